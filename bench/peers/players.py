"""The peers: what a user of Python would pick instead.

A player is made for one run, with a setting and a seed. In every round it is
asked for an offer, K of the N items whose features are the rows of x, and then
observes the choice: 0 for none, or a position in the offer from 1. It sees no
utility, no shock and no optimum.

Learners of single arms (all but Vowpal Wabbit) get a reward for every shown item:
1 if it was taken, else 0. Items have no identity, only features, so all items
share one model and each is a row.

`documented` is the package's documented default, on the features as they are.
`grid` are the settings that race.py tune chooses from. A degree above 1 gives
the package the polynomial features up to that degree.
"""

import numpy as np
from sklearn.preprocessing import PolynomialFeatures


class Rows:
    """Shared by the learners of single arms: polynomial features, and top-K."""

    def __init__(self, degree, k, seed):
        self.k = k
        self.rng = np.random.default_rng(seed)
        self.poly = PolynomialFeatures(degree, include_bias=False)

    def offer(self, x):
        self.rows = self.poly.fit_transform(x)
        return self.choose(self.rows)

    def observe(self, offer, choice):
        taken = np.zeros(len(offer))
        if choice > 0:
            taken[choice - 1] = 1
        self.learn(self.rows[offer], taken)

    def top(self, value):
        """The K largest, ties at random."""
        order = np.lexsort((self.rng.random(len(value)), -value))
        return order[: self.k]


class VowpalWabbit:
    """Conditional contextual bandits: one action for each of K slots.

    Documented: --ccb_explore_adf and nothing else, which is ε-greedy with
    ε = 0.05, cb_type mtr and learning rate 0.5.
    """

    documented = {"degree": 1, "options": ""}
    grid = [
        {"degree": degree, "options": options}
        for degree in (2, 3)
        for options in (
            "--cover 4 --epsilon 0",
            "--squarecb --gamma_scale 10000",
            "--squarecb --gamma_scale 10000 --learning_rate 2",
        )
    ]

    def __init__(self, k, seed, degree, options):
        from vowpalwabbit import Workspace

        interactions = "".join(f" --interactions {'x' * m}" for m in range(2, degree + 1))
        self.k = k
        self.vw = Workspace(f"--ccb_explore_adf --quiet --random_seed {seed}{interactions} {options}")

    def offer(self, x):
        self.shared = ["ccb shared |"] + [
            "ccb action |x " + " ".join(f"f{j}:{v:.9g}" for j, v in enumerate(row)) for row in x
        ]
        slots = self.vw.predict(self.shared + ["ccb slot |"] * self.k)
        self.probability = [slot[0][1] for slot in slots]
        return [slot[0][0] for slot in slots]

    def observe(self, offer, choice):
        self.vw.learn(self.shared + [
            f"ccb slot {item}:{-1 if choice == slot + 1 else 0}:{p:.9g} |"
            for slot, (item, p) in enumerate(zip(offer, self.probability))
        ])


class LinUCB(Rows):
    """contextualbandits' LinUCB: the first of its arms is "shown", the other is idle.

    Documented: alpha = 1 and lambda_ = 1, of a linear regression with an intercept.
    Here it is in double precision.
    """

    documented = {"degree": 1, "alpha": 1.0, "lambda_": 1.0}
    grid = [
        {"degree": degree, "alpha": alpha, "lambda_": 1.0}
        for degree in (1, 2, 3)
        for alpha in (0.01, 0.1)
    ]

    def __init__(self, k, seed, degree, alpha, lambda_):
        from contextualbandits.online import LinUCB as Model

        super().__init__(degree, k, seed)
        self.model = Model(nchoices=2, alpha=alpha, lambda_=lambda_, use_float=False, random_state=seed)
        self.fitted = False

    def choose(self, rows):
        if not self.fitted:
            return self.rng.choice(len(rows), self.k, replace=False)
        return self.top(self.model.decision_function(rows)[:, 0])

    def learn(self, rows, taken):
        self.model.partial_fit(rows, np.zeros(len(rows), dtype=int), taken)
        self.fitted = True


class BayesianBandits(Rows):
    """bayesianbandits' Bayesian logistic regression under an upper confidence bound.

    Documented: prior precision alpha = 1, and the 0.68 quantile of 1000 draws.
    An intercept is a feature of 1.
    """

    documented = {"degree": 1, "precision": 1.0, "quantile": 0.68}
    grid = [
        {"degree": degree, "precision": 1.0, "quantile": quantile}
        for degree in (1, 2, 3)
        for quantile in (0.5, 0.68)
    ]

    def __init__(self, k, seed, degree, precision, quantile):
        super().__init__(degree, k, seed)
        self.precision, self.quantile, self.seed, self.agent = precision, quantile, seed, None

    def start(self, items):
        from bayesianbandits import Arm, BayesianGLM, FunctionArmFeaturizer
        from bayesianbandits import LipschitzContextualAgent, UpperConfidenceBound

        # The context is the features of all items in a row; an arm has its own part of it.
        def part(context, tokens):
            table = np.asarray(context).reshape(len(context), items, -1)
            return table[:, tokens, :].transpose(0, 2, 1)

        self.agent = LipschitzContextualAgent(
            arms=[Arm(i) for i in range(items)],
            policy=UpperConfidenceBound(alpha=self.quantile),
            arm_featurizer=FunctionArmFeaturizer(part),
            learner=BayesianGLM(alpha=self.precision, link="logit"),
            random_seed=self.seed,
        )

    def choose(self, rows):
        if self.agent is None:
            self.start(len(rows))
        self.context = np.hstack([np.ones((len(rows), 1)), rows]).reshape(1, -1)
        [offer] = self.agent.pull(self.context, top_k=self.k)
        return offer

    def learn(self, rows, taken):
        # What the update of each shown arm does to the learner that they share, in one step.
        self.agent.learner.partial_fit(np.hstack([np.ones((len(rows), 1)), rows]), taken)


class River(Rows):
    """river's logistic regression on standardised features, the K largest probabilities.

    Documented: SGD with learning rate 0.01 for the coefficients and for the
    intercept, and ε-greedy with ε = 0.1 for each slot, as in the example of
    river.bandit.EpsilonGreedy. Tuned, the intercept learns ten times as fast: it
    must come down to the rate at which items are taken before the coefficients
    mean something, and the best of the shown items hardly differ.
    """

    documented = {"degree": 1, "optimizer": "SGD", "rate": 0.01, "intercept_rate": 0.01, "epsilon": 0.1}
    grid = [
        {"degree": degree, "optimizer": optimizer, "rate": rate, "intercept_rate": 0.1, "epsilon": 0.0}
        for degree in (1, 2, 3)
        for optimizer, rate in (("SGD", 0.01), ("AdaGrad", 0.1))
    ]

    def __init__(self, k, seed, degree, optimizer, rate, intercept_rate, epsilon):
        from river import optim
        from river.linear_model import LogisticRegression
        from river.preprocessing import StandardScaler

        super().__init__(degree, k, seed)
        self.epsilon = epsilon
        self.scaler = StandardScaler()
        self.model = LogisticRegression(optimizer=getattr(optim, optimizer)(rate), intercept_lr=intercept_rate)

    def choose(self, rows):
        import pandas as pd

        table = pd.DataFrame(rows, columns=[f"x{j}" for j in range(rows.shape[1])])
        self.scaler.learn_many(table)
        self.scaled = self.scaler.transform_many(table)
        offer = list(self.top(self.model.predict_proba_many(self.scaled)[True].to_numpy()))
        for slot in range(self.k):
            if self.rng.random() < self.epsilon:
                others = [i for i in range(len(rows)) if i not in offer]
                offer[slot] = others[self.rng.integers(len(others))]
        return offer

    def observe(self, offer, choice):
        for slot, item in enumerate(offer):
            self.model.learn_one(self.scaled.iloc[item].to_dict(), choice == slot + 1)


PEERS = {
    "Vowpal Wabbit CCB": VowpalWabbit,
    "contextualbandits LinUCB": LinUCB,
    "bayesianbandits GLM-UCB": BayesianBandits,
    "river logistic top-K": River,
}
