# For coding agents

This is an application on heddle: plugins that run in worker threads behind one HTTP listener.

- `domains/<domain>/plugins/<verb-noun>.ts` has one plugin as its default export: `export default plugin(({ http, db }) => { … })`. The function takes its tools (`http`, `db`, `event_bus`, `state`, `auth`, `scheduler`, `logger`,
  `config`, `registry`, `telemetry`), and registers routes (`http.get(path, options?, handler)`), subscriptions and jobs.
- Start with `npm run new -- domain <name>` or `npm run new -- plugin <domain>/<verb-noun>`, and change what it writes. Never change a migration that has been applied: write the next one.
- Domains do not import each other and do not touch each other's tables. They publish and subscribe to events, whose payloads `domains/<domain>/events.ts` declares.
- Import `heddle`, packages, and files of the same domain. A module-level variable exists once per thread: what requests share belongs in `state` or `db`.
- Write rows and publish their event in one `db.transaction(async (tx) => …)` with `tx.publish`. Delivery is at least once: subscribers are idempotent.
- Await every call of a tool. Never block: a handler that computes for long stops its thread.
- Tests are in `test/<domain>/`: `plugin(t, createOrder, { domain })` runs one plugin with real tools, `boot(t)` a process. Wait with `app.event(name)` and `app.idle()`, never for a time.
- How to do what, with whole files: `node_modules/heddle/dist/src/guides/README.md` (authentication, webhooks, background work, …). Every call of a tool with its options and errors:
  `node_modules/heddle/dist/src/contracts/<tool>.md`; the types are beside it. Rules of plugins: `node_modules/heddle/dist/domains/README.md`. Errors by code: `node_modules/heddle/dist/src/core/errors/README.md`.
- Before you are done: `npm run check && npm test`, and `npm run agents`, which writes the list below anew.
