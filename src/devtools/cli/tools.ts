// The command `tools`.
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CommandError, UsageFault, unknownName } from '../../core/config/command-line.ts'
import { loadSettings } from '../../core/config/load.ts'
import { shown } from '../../core/errors/places.ts'
import { readText } from '../../preload/text-file.cjs'
import { activeTools, findTools, ownToolsFolder, toolNameOf } from '../../runtime/kernel/discover.ts'
import { command } from './command.ts'

const USAGE =
  'Usage: npm run tools                          lists the tools\n       npm run tools -- use <implementation>   makes that folder the active one of its tool'

/** An implementation of a tool, which is one folder. */
interface Implementation {
  /** The folder's name. */
  folder: string
  /** The tool's name; null when the source does not show it: the code must not run, since packages of a parked tool may be missing. */
  tool: string | null
  /** A process would take it. */
  active: boolean
}

/** A package is not changed: the application's own package.json chooses. */
const IS_PACKAGE = import.meta.url.endsWith('.js')

export const tools = command(USAGE, {}, (_, [word, wanted, ...more]) => {
  const { settings } = loadSettings()
  const { toolsDir } = settings
  // The folder of parked implementations is beside the one of the active tools, so that relative imports are valid in both.
  const extrasDir = join(dirname(toolsDir), 'extras')
  const active = activeTools(toolsDir, settings.tools).map(({ path }) => path)
  const folders = [ownToolsFolder() ?? [], toolsDir, existsSync(extrasDir) ? extrasDir : []].flat()
  const found = folders.flatMap(findTools).map((each): Implementation => {
    const { path } = each
    return { folder: basename(path), tool: toolNameOf(each), active: active.includes(path) }
  })
  if (word === undefined) return list(found)
  if (word !== 'use') throw unknownName(`There is no command ${word}`, word, ['use'], USAGE)
  if (wanted === undefined || more.length > 0) throw new UsageFault(USAGE)
  if (IS_PACKAGE) choose(wanted, found)
  else use(wanted, found, toolsDir, extrasDir)
})

function list(found: readonly Implementation[]): void {
  const rows = found
    .map(({ tool, folder, active }) => [tool ?? '(no name)', folder, active ? 'active' : 'parked'])
    .sort((a, b) => (a.join() < b.join() ? -1 : 1))
  const table = [['tool', 'implementation', 'state'], ...rows]
  const widths = [0, 1].map((column) => Math.max(...table.map((row) => row[column]!.length)))
  for (const [tool, folder, state] of table) {
    console.log(`${tool!.padEnd(widths[0]!)}  ${folder!.padEnd(widths[1]!)}  ${state}`)
  }
}

/** Makes package.json choose the implementation. */
function choose(wanted: string, found: readonly Implementation[]): void {
  const target = found.find(({ folder }) => folder === wanted)
  if (target?.tool == null) throw new CommandError(unknownMessage(wanted, found, 'the package'))
  if (target.active) throw new CommandError(`${wanted} is active already`)
  const manifest = JSON.parse(readText('package.json'))
  manifest.heddle = { ...manifest.heddle, tools: { ...manifest.heddle?.tools, [target.tool]: wanted } }
  writeFileSync('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
  console.log(`${target.tool} is ${wanted} from the next start on: package.json says so`)
}

/** Parks the active implementation of the tool, and makes the wanted one active. */
function use(wanted: string, found: readonly Implementation[], toolsDir: string, extrasDir: string): void {
  const target = found.find(({ folder, active }) => folder === wanted && !active)
  if (found.some(({ folder, active }) => folder === wanted && active)) {
    if (target === undefined) throw new CommandError(`${wanted} is active already`)
    throw new CommandError(`${wanted} is both in ${shown(toolsDir)} and in ${shown(extrasDir)}: remove one of them`)
  }
  if (target === undefined) throw new CommandError(unknownMessage(wanted, found, extrasDir))
  if (target.tool === null) {
    throw new CommandError(`${shown(join(extrasDir, wanted))} has no default-exported class with a literal \`name\``)
  }
  const replaced = found.filter(({ tool, active }) => active && tool === target.tool).map(({ folder }) => folder)
  const taken = replaced.find((folder) => existsSync(join(extrasDir, folder)))
  if (taken !== undefined) {
    throw new CommandError(`${taken} cannot be parked: there is a folder ${shown(join(extrasDir, taken))} already`)
  }
  mkdirSync(extrasDir, { recursive: true })
  moveAll([
    ...replaced.map((folder) => ({ from: join(toolsDir, folder), to: join(extrasDir, folder) })),
    { from: join(extrasDir, wanted), to: join(toolsDir, wanted) },
  ])
  const parked = replaced.length > 0 ? `, ${replaced.join(', ')} is parked in ${shown(extrasDir)}` : ''
  console.log(`${target.tool} is ${wanted} from the next start on${parked}`)
}

function unknownMessage(wanted: string, found: readonly Implementation[], extrasDir: string): string {
  const ofTool = found.filter(({ tool }) => tool === wanted).map(({ folder }) => folder)
  if (ofTool.length > 0) return `${wanted} is a tool; name an implementation of it: ${ofTool.join(', ')}`
  const parked = found.filter(({ active }) => !active).map(({ folder }) => folder)
  const choice = parked.length > 0 ? `parked there: ${parked.join(', ')}` : 'nothing is parked there'
  return `There is no implementation ${wanted} in ${shown(extrasDir)}; ${choice}`
}

/** Makes all of the moves or none, since a tools folder without one of the tools does not boot. */
function moveAll(moves: readonly { from: string; to: string }[]): void {
  const done: { from: string; to: string }[] = []
  try {
    for (const move of moves) {
      renameSync(move.from, move.to)
      done.push(move)
    }
  } catch (error) {
    for (const { from, to } of done.reverse()) renameSync(to, from)
    throw new CommandError(`Nothing was moved: ${error instanceof Error ? error.message : error}`)
  }
}
