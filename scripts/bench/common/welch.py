"""Welch's t-test (Welch 1947): whether two samples have different means, where their
variances may differ."""
import math
import statistics


def two_sided_p(a, b):
    """The two-sided p-value; None for fewer than two values on a side or where no value varies."""
    if min(len(a), len(b)) < 2:
        return None
    parts = [statistics.variance(sample) / len(sample) for sample in (a, b)]
    error = sum(parts)
    if error == 0:
        return None
    freedom = error**2 / sum(part**2 / (len(sample) - 1) for part, sample in zip(parts, (a, b)))
    return 1 - within(abs(statistics.mean(a) - statistics.mean(b)) / math.sqrt(error), freedom)


def within(t, freedom):
    """P(|T| < t) of Student's t. With T = sqrt(freedom) tan(x), its density is proportional to
    cos(x)^(freedom - 1)."""
    end, steps = math.atan(t / math.sqrt(freedom)), 1000
    values = [math.cos(end * i / steps) ** (freedom - 1) for i in range(steps + 1)]
    simpson = (values[0] + values[-1] + 4 * sum(values[1:-1:2])
               + 2 * sum(values[2:-1:2])) * end / (3 * steps)
    whole = math.sqrt(math.pi) / 2 * math.exp(math.lgamma(freedom / 2)
                                              - math.lgamma((freedom + 1) / 2))
    return simpson / whole
