"""The names of `barnabas.streams`: importing its modules does not hide any of them."""

import pkgutil

import barnabas.streams


def test_no_module_of_the_package_has_the_name_of_something_that_it_gives() -> None:
    # Importing such a module would put it in the name's place.
    modules = {module.name for module in pkgutil.iter_modules(barnabas.streams.__path__)}

    assert modules.isdisjoint(barnabas.streams.__all__)
