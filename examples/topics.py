"""Topics (LDA): every document has shares of three topics, every word is drawn from one of them."""

import numpy as np

import heliograph as hg

rng = np.random.default_rng(1)
n_documents, length, n_words, n_topics = 30, 60, 50, 3
true_topics = rng.dirichlet(np.full(n_words, 0.1), n_topics)
true_shares = rng.dirichlet(np.full(n_topics, 0.3), n_documents)
document = np.repeat(np.arange(n_documents), length)
word = np.array([rng.choice(n_words, p=true_shares[d] @ true_topics) for d in document])

model = hg.Model()
topics = model.dirichlet("topics", np.full((n_topics, n_words), 0.1))
shares = model.dirichlet("shares", np.full((n_documents, n_topics), 0.3))
topic = model.categorical("topic", shares[document])
model.categorical("word", topics, given=topic, observed=word)
posterior = model.infer()

if __name__ == "__main__":
    fit = (posterior[shares].mean @ posterior[topics].mean)[document, word]
    print(f"converged {posterior.converged}; perplexity {np.exp(-np.log(fit).mean()):.1f}")
