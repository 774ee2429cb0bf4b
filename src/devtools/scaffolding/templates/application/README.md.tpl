# {{name}}

An application on heddle.

```sh
npm install
npm run dev        # http://127.0.0.1:8000/hello/world, /system/dashboard, /system/docs; loads what you save
npm start          # the same in production
npm test           # all tests; npm test hello: those whose path has the word; npm test -- --watch: again at each save
npm run check      # types and architecture; it says what to install for that, where it is missing
npm run migrate    # applies pending migrations and ends; npm start does so, too
npm run client -- --out client.ts            # a typed client of the service, one file
npm run new -- domain orders                 # a table, an event, a plugin, and its test
npm run new -- plugin orders/cancel-order    # the verb chooses method and path
{{update}}; what has changed: node_modules/heddle/CHANGELOG.md
```

An application installs what it uses: PostgreSQL, Redis, OpenTelemetry, assistants and the checks need further packages, and what lacks one says the command that installs it
([the list](node_modules/heddle/dist/domains/README.md#what-an-application-installs)).

One file in `domains/<domain>/plugins/` is one feature. Settings are environment variables: see `.env.example`.

[Guides](node_modules/heddle/dist/src/guides/README.md), step by step · [writing plugins](node_modules/heddle/dist/domains/README.md), with a page for each tool · [all settings](node_modules/heddle/dist/src/core/config/README.md) ·
[errors by code](node_modules/heddle/dist/src/core/errors/README.md) · [deployment](node_modules/heddle/dist/deploy/README.md)
