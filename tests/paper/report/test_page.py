"""The page: all in one file, and well behaved in a real browser on a phone's width."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from heliograph.paper.report.page import build
from heliograph.paper.results import write_outcome

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# written into a copy of the page: what the browser saw, as attributes that --dump-dom shows
_LOOK = """<script>addEventListener('load', () => setTimeout(() => {
const images = [...document.images], width = document.documentElement.clientWidth, box = document.body.dataset;
box.images = images.length;
box.broken = images.filter(i => !i.complete || i.naturalWidth === 0).length;
box.page = document.documentElement.scrollWidth; box.view = width;
// things inside a box that scrolls by itself may be wider than the page
box.out = [...document.body.querySelectorAll('*')].filter(e => !e.closest('.scroll') &&
  e.getBoundingClientRect().right > width + 1).length;
}, 200));</script></body>"""


class _Parser(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.images, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))
        self.links += [v for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def _parsed(page):
    parser = _Parser()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def test_the_page_is_well_formed_and_needs_no_network(report_page):
    parser = _parsed(report_page)
    assert parser.open == []
    assert all(link.startswith(("data:", "#")) for link in parser.links)
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]*", "", report_page.read_text(encoding="utf-8"))


def test_every_image_says_what_it_shows_and_is_also_a_file_of_two_kinds(report_page):
    images = _parsed(report_page).images
    assert len(images) > 5 and all(len(image["alt"]) > 30 for image in images)
    files = sorted((report_page.parent / "figures").iterdir())
    assert len([f for f in files if f.suffix == ".png"]) == len([f for f in files if f.suffix == ".pdf"]) == len(images)


def test_markup_in_a_file_of_results_is_shown_and_not_obeyed(made_up, tmp_path):
    outcome = made_up.exp3()
    bad = "<script>alert('x')</script>"
    outcome.json["methods"][bad] = outcome.json["methods"].pop("neural")
    outcome.json["settings"][f"{bad}&"] = f'"><img src=x onerror={bad}>'
    outcome.json["failed"] = {bad: f"ValueError: {bad}"}
    outcome.json["machine"]["system"] = bad
    write_outcome(tmp_path, outcome._replace(series={}))
    page = build(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text and "<img src=x" not in text and text.count("&lt;script&gt;") >= 5
    assert _parsed(page).open == []


def test_an_interrupted_run_is_called_one(made_up, tmp_path):
    outcome = made_up.exp3()
    told = {
        **outcome.json,
        "complete": False,
        "parts": [1, 4],
        "methods": {"kjit (text)": outcome.json["methods"]["kjit (text)"]},
    }
    write_outcome(tmp_path, outcome._replace(json=told, series={}))
    assert "1 of 4 parts are finished" in build(tmp_path).read_text(encoding="utf-8")


def test_building_again_gives_the_same_page(made_up, tmp_path):
    write_outcome(tmp_path, made_up.exp3(1)._replace(series={}))
    before = build(tmp_path).read_bytes()
    assert build(tmp_path).read_bytes() == before


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path (apt-get install chromium)")
@pytest.mark.parametrize("width", [400, 1200])
def test_in_a_real_browser_no_image_is_missing_and_nothing_overflows(report_page, tmp_path, width):
    copy = tmp_path / "report.html"
    copy.write_text(report_page.read_text(encoding="utf-8").replace("</body>", _LOOK), encoding="utf-8")
    # a headless window is at least 500 wide, so the page is shown in a frame of the phone's width
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<!doctype html><body style="margin:0"><iframe id="f" src="report.html" style="border:0;width:{width}px;height:800px">'
        "</iframe><script>addEventListener('load', () => setTimeout(() => Object.assign(document.body.dataset, "
        "document.getElementById('f').contentDocument.body.dataset), 1500));</script></body>"
    )
    run = subprocess.run(
        [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
         f"--window-size={width + 40},900",
         "--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000", "--dump-dom",
         frame.as_uri()],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    body = re.search(r"<body[^>]*>", run.stdout)
    assert body is not None, run.stderr[-2000:]
    seen = {k: int(v) for k, v in re.findall(r'data-(\w+)="(\d+)"', body[0])}
    assert seen["view"] == width
    assert seen["images"] == len(_parsed(report_page).images) and seen["broken"] == 0
    assert seen["page"] <= width and seen["out"] == 0
