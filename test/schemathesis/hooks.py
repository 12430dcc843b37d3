"""Writes whole numbers in URLs the way a client does, and sends NDJSON.

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


@schemathesis.serializer("application/x-ndjson")
def send_lines(context, value):
    """Sends NDJSON, which Schemathesis does not know, as the text that it is."""
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
