"""Recipes: Taylor terms of a gradient by matrix steps, against closed forms."""

import numpy as np
import pytest

from stagescope.flow.series import Recipe


def product_recipe():
    """-grad of |a b|^2 / 2, whose terms are polynomials of degree 3."""
    recipe = Recipe()
    a, b = recipe.parameter(2, 3), recipe.parameter(3, 2)
    product = recipe.times(a, b)
    return recipe.field(recipe.times(product, b.T), recipe.times(a.T, product))


def product_velocity(vector):
    a, b = vector[:6].reshape(2, 3), vector[6:].reshape(3, 2)
    return -np.concatenate([(a @ b @ b.T).ravel(), (a.T @ a @ b).ravel()])


def test_terms_of_a_polynomial_sum_to_it():
    rng = np.random.default_rng(0)
    here, lines = rng.normal(size=12), rng.normal(size=(4, 12))
    terms = product_recipe()(here, lines, 3)
    for line, found in zip(lines, np.moveaxis(terms, 1, 0), strict=True):
        for share in (-1.0, 0.3, 2.0):
            value = sum(term * share**power for power, term in enumerate(found))
            np.testing.assert_allclose(value, product_velocity(here + share * line), atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 4])
def test_lines_do_not_depend_on_each_other_and_orders_agree(order):
    rng = np.random.default_rng(1)
    here, lines = rng.normal(size=12), rng.normal(size=(3, 12))
    together = product_recipe()(here, lines, order)
    for place, line in enumerate(lines):
        np.testing.assert_array_equal(together[:, place], product_recipe()(here, line[None], order)[:, 0])
    np.testing.assert_array_equal(together[:1], product_recipe()(here, lines, 0))


def test_softmax_has_the_series_of_the_logistic_function():
    """softmax(x, 0)_1 = 1 / (1 + e^-x) = 1/2 + x/4 - x^3/48 + x^5/480 - ..."""
    recipe = Recipe()
    scores = recipe.parameter(1, 2)
    terms = recipe.field(recipe.softmax(scores, recipe.constant(np.zeros(2))))(np.zeros(2), np.array([[1.0, 0.0]]), 5)
    np.testing.assert_allclose(-terms[:, 0, 0], [1 / 2, 1 / 4, 0, -1 / 48, 0, 1 / 480], atol=1e-15)


def test_a_token_that_never_comes_gets_nothing():
    recipe = Recipe()
    scores = recipe.parameter(1, 3)
    with np.errstate(divide="ignore"):
        shift = recipe.constant(np.log([0.5, 0.5, 0.0]))
    terms = recipe.field(recipe.softmax(scores, shift))(np.zeros(3), np.ones((1, 3)), 2)
    np.testing.assert_allclose(-terms[:, 0], [[0.5, 0.5, 0.0], [0.0] * 3, [0.0] * 3], atol=1e-15)
