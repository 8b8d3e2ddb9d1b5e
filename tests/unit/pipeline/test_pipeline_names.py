"""The names of `barnabas.pipeline`: each stays what it is, whatever else is imported."""

import pkgutil

import barnabas.pipeline


def test_no_module_of_the_package_has_the_name_of_something_that_it_gives() -> None:
    # Importing such a module would put it in the name's place.
    modules = {module.name for module in pkgutil.iter_modules(barnabas.pipeline.__path__)}

    assert modules.isdisjoint(barnabas.pipeline.__all__)
