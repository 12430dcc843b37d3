"""Writes whole numbers in URLs the way a client does.

A body may say 1.0, which is the integer 1. Schemathesis then asks for /plants/1.0, where an id is
digits.
"""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    for values in (case.path_parameters, case.query):
        for name, value in (values or {}).items():
            if isinstance(value, float) and value.is_integer():
                values[name] = int(value)
