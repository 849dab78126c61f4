"""Writes math_f64.txt: correctly rounded values of the transcendentals in double precision, from MPFR.

    pip install gmpy2 && python math_f64.py > math_f64.txt

A line is `function x [y] value part`: the arguments and the value as hexadecimal bits, and what rounding the value took
away, in 1/256 of its unit in the last place. `math_f64.py N SEED` writes N random points per function instead, for a
wider search; the worst points it found are in HARD.
"""

import math
import random
import struct
import sys

import gmpy2
from gmpy2 import mpfr

WIDE = gmpy2.context(precision=400, emin=-100000, emax=100000, trap_divzero=False)
gmpy2.set_context(WIDE)


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def number(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def log_uniform(rng, low, high):
    """A number of random mantissa whose binary exponent is in low..high."""
    return math.ldexp(1.0 + rng.random(), rng.randint(low, high)) * rng.choice((1.0, -1.0))


def near_exponent_edges(rng):
    spread = rng.choice((rng.uniform(-745.2, 709.8), rng.uniform(-745.2, -700.0)))
    return rng.choice((spread, rng.uniform(-2, 2), log_uniform(rng, -60, 3)))


def positive(rng):
    near_one = rng.choice((rng.uniform(0.5, 2.0), 1.0 + log_uniform(rng, -52, -2)))
    return rng.choice((abs(log_uniform(rng, -1022, 1022)), near_one, rng.uniform(0, 3e-308)))


def above_minus_one(rng):
    near_pole = -1.0 + abs(log_uniform(rng, -52, -2))
    return rng.choice((abs(log_uniform(rng, -20, 1022)), rng.uniform(-0.9, 2.0), log_uniform(rng, -60, -2), near_pole))


def angle(rng):
    near_multiple = rng.randint(1, 1 << rng.randint(2, 50)) * (math.pi / 2)
    return rng.choice((log_uniform(rng, -30, 1023), rng.uniform(-7, 7), log_uniform(rng, -3, 12), near_multiple))


def saturating(rng):
    return rng.choice((rng.uniform(-6, 6), rng.uniform(-1.2, 1.2), rng.uniform(-20, 20), log_uniform(rng, -30, 0)))


def power(rng):
    x = rng.choice((positive(rng), rng.uniform(0.1, 10.0), rng.uniform(0.5, 2.0)))
    largest = 1070.0 / max(abs(math.log2(x)), 1e-17) if x > 0 else 1.0
    y = rng.choice((rng.uniform(-1, 1) * largest, rng.uniform(-8, 8), float(rng.randint(-20, 20))))
    return x, y


FUNCTIONS = {
    "exp": (gmpy2.exp, near_exponent_edges),
    "exp_m1": (gmpy2.expm1, near_exponent_edges),
    "ln": (gmpy2.log, positive),
    "ln_1p": (gmpy2.log1p, above_minus_one),
    "sin": (gmpy2.sin, angle),
    "cos": (gmpy2.cos, angle),
    "tan": (gmpy2.tan, angle),
    "tanh": (gmpy2.tanh, saturating),
    "erf": (gmpy2.erf, saturating),
    "rsqrt": (gmpy2.rec_sqrt, positive),
    "pow": (lambda x, y: x**y, power),
}

# Doubles very close to multiples of pi/2, and the worst points of searches over 10^5 points a function.
CLOSE_TO_QUADRANT = [
    (math.ldexp(6381956970095103, 797),),
    (math.ldexp(6411027962775774, -48),),
    (math.ldexp(5319372648326541, 202),),
]
HARD = {
    "cos": [
        "c01c240c919c2460", "c00f3ca7225e3ce7", "409137e2bc74db45", "c00ee7cad5db635a", "673d64eb3f8186b4",
        "c07b571293096e99", "5c91c2c7728465d9", "ccebbd5613bd1186", "4065821aaddac050", "f10a1a862449a2b4",
        "c0523edfd2bc5b02", "400f4c35cf338c34",
    ],
    "erf": [
        "bfef9ed5071433c0", "3ff13b841613a1d9", "3ff0cd401e32c4cd", "3fefb6603bac5f5a", "3fefbe6d7750ff50",
        "bff0f6326dbeee71", "3ff0e9f655727a4f", "bff120c2fceaf1d6", "3ff11629e6f5ed11", "3ff12cfbec5b9395",
        "3ff14a66b24b0877", "3ff0f3444c33803f",
    ],
    "exp": [
        "3ff047f08c591402", "c08625fb133993c6", "c06719e1c7883fec", "bfd7c1ef36b23748", "bfd63b6d50871990",
        "bfeef7774833da90", "c086260f2cb7520b", "408510f62e084f40", "3ff098c82283a3c0", "c0639df738cb9b08",
        "4077b7e51df19854", "407499402338b57c",
    ],
    "exp_m1": [
        "3fdbec2064f4f870", "bfd2a63c182b0698", "3fdb733c4d92fa4c", "3ff13b6316d1f85e", "3ff13162c7a8bc78",
        "bfda1c6b27b3bfe8", "3ff188eb3306b2fe", "3ff102da4c72be94", "3ff120e8d2b42b68", "bfd4bc448a13f4d8",
        "bfd2c000f2db8770", "bfd404c357406dc8",
    ],
    "ln": [
        "3ff6861363fe43ae", "3ff69f0375120960", "3ff677f2706e6c82", "3ff97965791f28da", "3ffa3011eeb8ca8a",
        "3fe4069252bdf54c", "3ff65e715eb2a351", "3ff9215e44eab0b9", "3ff96e535d018a12", "3ff953edef2f9166",
        "3ff98960292e0295", "3ff9c0be9a380e84",
    ],
    "ln_1p": [
        "3fe3e6570367848d", "3ffa6c56f8ea0626", "bfd84d955a329a98", "3ffa4eaa419afe36", "3fe459a5f3e6abb3",
        "3ffa1dde65af63d8", "3fdae6c737210efd", "bfd7f5a788f5010c", "3fe3fe835abdaac3", "3fe2d9d877555d0f",
        "3ffa6ad052093182", "bfd830a90e116252",
    ],
    "pow": [
        "3fe85f19729f2f77 c0a19c6acc0a74b2", "3ff6fc28d0462437 409ccfd9b240b073", "3fe6d13e5723de42 c0977866a85c3fbd",
        "3fe738581a8322ee 4094ae40e11b9813", "3ff6e9f443333963 c09956794e6ea583", "3fe79dc2414ba83a 409c1d7d624a1303",
        "3ff68e5f0c17d727 409e84a083df1063", "3ff5a5f2b0db7407 409db96df3b1b729", "3ff6b1be22b87ee1 409bc20770e7650e",
        "3ff6843df16a259f c09ff6fd095ae986", "3ff7c973d37d056a c09a1e3e652554e1", "3fe687727640ac3c 409de8b7136fd02a",
    ],
    "rsqrt": [
        "100854fdb00cf1", "3ff01a7d51eb644c", "3ff000207e1b42b0", "3ff018af9ece4ae6", "3ff01c6367538c58",
        "14700a90b4279f46", "40563a3f943ee", "3ff000a0a78bc3be", "1510291d6d4e5de4", "3ff00007f509839f",
        "101685c5452015", "41126750aa045",
    ],
    "sin": [
        "44fee8bc783e6872", "404efdc5f5fd1286", "3feaac9314bef720", "400fe3e8ad6b7354", "bfea633d183c5ed8",
        "3fea8957fb739dc0", "d4673f18212f060e", "c0308e72e07a02fe", "c015dd95fd152ac2", "3fea076f51699ef8",
        "bfeaea2c583e1ca8", "4c72e6d6411efe98",
    ],
    "tan": [
        "d5a4bb8432b8763c", "59ed0af7cc203fdf", "4061f831fc736200", "d8bff553f1a00d4f", "c0033b6d5fcd6770",
        "db445c63245ad642", "c015ff61d311f402", "c090dfd176aea802", "3fe8e864ede20aea", "c8a8c6df5b6cc40a",
        "d88c50bad6c98b7e", "c00f10230ee309dc",
    ],
    "tanh": [
        "bfe3c6e4a64319b6", "3fe220aafb47c874", "bfe1aae30a7d88b9", "bfe20a4f8cf30ff5", "3fe19a65b9e80a34",
        "3fe24ce200048b8c", "3fe2281d2ca70148", "bfe1bc0920a25688", "bfe1b787cd725f55", "3fe266b1ae2ef270",
        "bfe21a58a3da5688", "bfe32751054b862d",
    ],
}


def line(name, arguments):
    function, _ = FUNCTIONS[name]
    exact = function(*(mpfr(x) for x in arguments))
    if not gmpy2.is_finite(exact):
        return None
    value = float(exact)
    if math.isinf(value) or value == 0.0:
        return None
    part = int(gmpy2.rint((exact - mpfr(value)) / mpfr(math.ulp(value)) * 256))
    return " ".join([name, *(f"{bits(x):x}" for x in arguments), f"{bits(value):x}", str(part)])


def main():
    wide = len(sys.argv) > 1
    n_points = int(sys.argv[1]) if wide else 520
    for name, (_, sample) in FUNCTIONS.items():
        rng = random.Random(f"{name} {sys.argv[2] if wide else 0}")
        points = [tuple(number(int(h, 16)) for h in hard.split()) for hard in HARD.get(name, [])]
        if name in ("sin", "cos", "tan"):
            points += CLOSE_TO_QUADRANT
        while len(points) < n_points:
            point = sample(rng)
            points.append(point if isinstance(point, tuple) else (point,))
        for point in points:
            text = line(name, point)
            if text:
                print(text)


main()
