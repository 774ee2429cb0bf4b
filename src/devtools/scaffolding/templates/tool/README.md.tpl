# {{name}}

A client of the {{title}} server at `{{variable}}`. Plugins get it by `{{name}}`. The address is,
for example, `http://127.0.0.1:9000`.

- `read(key)` → text. Rejects when `{{variable}}` is not set, when the server has nothing for the key, and when the server does not answer within 5 s.

Each call is a metric `{{name}}.read` in `/system/metrics`; `/system/status` shows the server's health.
