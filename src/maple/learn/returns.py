"""Returns along chains of decisions: each row points at the same seat's next one, always further on."""

from __future__ import annotations

from maple.core.kernels import kernel

__all__ = ["DROPPED", "ENDED", "OPEN", "gae", "lambda_targets"]

OPEN, ENDED, DROPPED = -1, -2, -3  # a `following` that is no row: not known yet, the game ended, the game was lost


@kernel
def gae(reward, value, following, bootstrap, gamma, lam, advantage):
    """Generalised advantage estimates of signal 0. An open row has none: its value closes the row before it.

    Writes advantage.
    """
    for i in range(len(following) - 1, -1, -1):
        j = following[i]
        if j >= 0:
            delta = reward[i, 0] + gamma * value[j, 0] - value[i, 0]
            advantage[i] = delta + gamma * lam * advantage[j]
        elif j == ENDED:
            advantage[i] = reward[i, 0] + gamma * bootstrap[i, 0] - value[i, 0]
        else:
            advantage[i] = 0.0


@kernel
def lambda_targets(reward, value, explored, following, bootstrap, gamma, lam, target):
    """TD(λ) targets for each signal, where value is that of the best option: cut where the seat explored (Watkins).

    Writes target.
    """
    for i in range(len(following) - 1, -1, -1):
        j = following[i]
        for c in range(reward.shape[1]):
            if j >= 0:
                beyond = value[j, c]
                if following[j] != OPEN and following[j] != DROPPED and not explored[j]:
                    beyond += lam * (target[j, c] - beyond)
                target[i, c] = reward[i, c] + gamma * beyond
            elif j == ENDED:
                target[i, c] = reward[i, c] + gamma * bootstrap[i, c]
            else:
                target[i, c] = value[i, c]
