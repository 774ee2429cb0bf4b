// npm run test:packages: what people already use, in lanes that end; by hand, and before a release. Then the table of `src/guides/packages.md` from what it saw.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ProcessGuard } from '../chaos/process-guard.ts'
import { NodeProgram } from '../nodes/node-program.ts'
import { installApplication, versionOf } from './application.ts'
import { ENTRIES, type Entry, thingOf } from './entries.ts'
import { Needs } from './needs.ts'
import { writePage } from './page.ts'
import { keepResult, readResults } from './results.ts'
import { tryPackage } from './trial.ts'
import { wrongsOf } from './verdict.ts'

const USAGE = `npm run test:packages -- [--node 22,24,26] [--newest] [--folder path] [--missing] [name…]
  name…          packages (default: all of the list)
  --node 22,24   Nodes, which come from npm (default: 22,24,26)
  --newest       the newest versions, which are written down; else those that were seen
  --folder path  where they are installed, and stay for the next time, with the logs (default: a temporary folder)
  --missing      those only that have no result yet, or one that is bad
  --at-a-time N  services at a time (default 1)
  --page         runs nothing: writes the table of src/guides/packages.md from results.jsonl`

const START = 'node_modules/heddle/dist/src/heddle.cjs'
const TRIES = 2

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      node: { type: 'string', default: '22,24,26' },
      newest: { type: 'boolean', default: false },
      folder: { type: 'string' },
      missing: { type: 'boolean', default: false },
      'at-a-time': { type: 'string', default: '1' },
      page: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(USAGE)
  if (values.page) return writePage()
  const unknown = positionals.filter((name) => ENTRIES.every((entry) => entry.name !== name))
  if (unknown.length > 0) throw new Error(`Not in the list: ${unknown.join(', ')}`)
  const chosen = ENTRIES.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
  const guard = new ProcessGuard()
  const work = values.folder ?? mkdtempSync(join(tmpdir(), 'heddle-packages-'))
  if (values.folder === undefined) guard.after(async () => rmSync(work, { recursive: true, force: true }))
  try {
    const nodes = await Promise.all(values.node.split(',').map(NodeProgram.provide))
    const app = await installApplication(work, nodes[0]!, chosen, values.newest)
    mkdirSync(join(work, 'logs'), { recursive: true })
    const needs = new Needs({ after: (end) => guard.after(end), skip: console.log })
    const good = new Set(
      readResults()
        .filter((each) => wrongsOf(each).length === 0)
        .map(({ name, node }) => `${name} ${node}`),
    )
    const tasks = nodes
      .flatMap((node) => chosen.map((entry) => ({ entry, node })))
      .filter(({ entry, node }) => !values.missing || !good.has(`${entry.name} ${node.line}`))
    const next = tasks.values()
    let failed = 0
    const work1 = async (): Promise<void> => {
      for (const { entry, node } of next) if (!(await tryOn(work, app, entry, node, needs))) failed++
    }
    await Promise.all(Array.from({ length: Number(values['at-a-time']) }, work1))
    console.log(`${tasks.length - failed} passed, ${failed} failed`)
    process.exitCode = failed > 0 ? 1 : 0
  } finally {
    await guard.end()
  }
}

/** Twice where it failed: a machine may be busy. @returns whether it is as the list says */
async function tryOn(work: string, app: string, entry: Entry, node: NodeProgram, needs: Needs): Promise<boolean> {
  const env = await needs.env(entry.needs ?? [])
  if (env === null) return false
  const thing = readFileSync(fileURLToPath(new URL(`./things/${thingOf(entry)}`, import.meta.url)), 'utf8')
  const site = {
    folder: app,
    node: join(node.bin, 'node'),
    start: [START, 'start'],
    env: { ...node.env, ...env, ...entry.env },
    heddle: 'heddle',
    preload: entry.preload,
  }
  const version = versionOf(app, entry.name)
  for (let tries = 1; ; tries++) {
    const outcome = await tryPackage(site, thing, join(work, 'logs', `${thingOf(entry)}-${node.line}-${tries}.log`))
    const wrongs = wrongsOf(outcome)
    const isGood = wrongs.length === 0 || entry.instead !== undefined
    console.log(
      `${isGood ? 'ok  ' : 'BAD '} Node ${node.line}, ${entry.name} ${version}: ${wrongs.join('; ') || 'works'} (gap ${outcome.gapMs} ms, ${outcome.seconds} s)`,
    )
    if (!isGood && tries < TRIES) continue
    keepResult({ name: entry.name, version, node: node.line, ...outcome })
    return isGood
  }
}

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})
