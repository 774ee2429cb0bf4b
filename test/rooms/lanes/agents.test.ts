import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { type StartOptions, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const TSX = import.meta.resolve('tsx')
const [PRELOAD, MAIN, GUARDIAN, HEDDLE] = ['preload.cjs', 'main.ts', 'guardian.cjs', 'heddle.cjs'].map((name) =>
  fileURLToPath(new URL(`../../../src/${name}`, import.meta.url)),
) as [string, string, string, string]
const LANES = 2

/** Notes in which process and thread it is loaded. */
const noting = (what: string, log: string): string =>
  `appendFileSync(${JSON.stringify(log)}, ['${what}', process.pid, threadId].join(' ') + '\\n')\n`
const REQUIRES = `const { appendFileSync } = require('node:fs'), { threadId } = require('node:worker_threads')\n`
const IMPORTS = `import { appendFileSync } from 'node:fs'\nimport { threadId } from 'node:worker_threads'\n`

/** An agent of each kind, and a service that tells where they are: `primary`, `lane`, or somewhere else. */
async function twoAgents(t: TestContext) {
  const folder = await folderOf(t, {})
  const log = join(folder, 'log')
  const files = await folderOf(t, {
    'agent.cjs': `${REQUIRES}${noting('require', log)}
      const { prototype } = require('node:module')
      const { require: load } = prototype
      prototype.require = function (name) {
        if (name === './methods/backup') ${noting('patched', log)}
        return load.call(this, name)
      }`,
    'agent.mjs': IMPORTS + noting('import', log),
    // Hooks, not the plugin: on a busy machine a plugin boots slowly, and lanes start without it.
    'domains/who/domain.ts': `${IMPORTS}export default () => { ${noting('lane', log)} }`,
    'domains/who/plugins/who.ts': 'export default class Who {}',
  })
  const [cjs, mjs] = [join(files, 'agent.cjs'), pathToFileURL(join(files, 'agent.mjs')).href]
  const read = (): string[][] =>
    readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
  const seen = async (options: StartOptions) => {
    // With a thread beside the lanes.
    const env = { HISTORY_ENABLED: 'true', ...options.env }
    const heddle = await startHeddle(t, { domains: [join(files, 'domains')], lanes: LANES, ...options, env })
    await until(() => read().filter(([what]) => what === 'lane').length >= LANES, 'the lanes have booted')
    assert.equal(await heddle.stop(), 0)
    const lines = read()
    const lanes = lines.filter(([what]) => what === 'lane')
    const where = (pid?: string, thread?: string): string => {
      if (pid !== lanes[0]![1]) return 'guardian'
      if (thread === '0') return 'primary'
      return lanes.some((lane) => lane[2] === thread) ? 'lane' : 'another thread'
    }
    const of = (kind: string): string[] =>
      lines.flatMap(([what, pid, thread]) => (what === kind ? [where(pid, thread)] : [])).sort()
    const everywhere = [...lanes.map(() => 'lane'), 'primary']
    return { everywhere, require: of('require'), import: of('import'), patched: of('patched') }
  }
  return { cjs, mjs, files, flags: `--require ${cjs} --import ${mjs}`, seen }
}

interface Way {
  readonly name: string
  readonly options: (agents: { cjs: string; mjs: string; flags: string; files: string }) => StartOptions
  /** Node itself has loaded them there. */
  readonly isInGuardian?: boolean
  readonly isDevelopment?: boolean
}

const node = (...args: string[]): StartOptions => ({ command: [process.execPath, ...args] })
const inDotEnv = ({ files, flags }: { files: string; flags: string }, ...args: string[]): StartOptions => {
  writeFileSync(join(files, '.env'), `NODE_OPTIONS="${flags}"\n`)
  return { ...node(...args), project: files }
}

const WAYS: Way[] = [
  { name: 'NODE_OPTIONS', options: ({ flags }) => ({ env: { NODE_OPTIONS: flags } }) },
  {
    name: 'NODE_OPTIONS for the guardian',
    options: ({ flags }) => ({ isGuarded: true, env: { NODE_OPTIONS: flags } }),
    isInGuardian: true,
  },
  {
    name: 'NODE_OPTIONS without the guardian',
    options: ({ flags }) => ({ isGuarded: true, env: { NODE_OPTIONS: flags, GUARDIAN: 'false' } }),
  },
  { name: 'NODE_OPTIONS in .env for the guardian', options: (agents) => inDotEnv(agents, GUARDIAN) },
  {
    name: 'NODE_OPTIONS in .env for `heddle dev`',
    options: (agents) => inDotEnv(agents, HEDDLE, 'dev'),
    isDevelopment: true,
  },
  { name: 'arguments', options: ({ cjs, mjs }) => node('--require', PRELOAD, '-r', cjs, `--import=${mjs}`, MAIN) },
  {
    name: 'arguments beside tsx',
    options: ({ cjs, mjs }) => node('--require', PRELOAD, '--import', TSX, '-r', cjs, `--import=${mjs}`, MAIN),
  },
  {
    name: 'arguments for the guardian',
    options: ({ cjs, mjs }) => node('--require', cjs, '--import', mjs, GUARDIAN),
    isInGuardian: true,
  },
]

for (const { name, options, isInGuardian, isDevelopment } of WAYS) {
  test(`agents by ${name} are once in the primary and in each lane, and in no thread beside them`, async (t) => {
    const agents = await twoAgents(t)
    const seen = await agents.seen(options(agents))
    // In development threads wait for the lanes of the next reload.
    const [require, imported, patched] = [seen.require, seen.import, seen.patched].map((places) =>
      places.filter((where) => !(isDevelopment && where === 'another thread')),
    )
    const expected = isInGuardian ? ['guardian', ...seen.everywhere] : seen.everywhere
    assert.deepEqual({ require, imported }, { require: expected, imported: expected })
    assert.deepEqual(patched, seen.everywhere, 'a module of the runtime that is kept is loaded as Node loads it')
  })
}
