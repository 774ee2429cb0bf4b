// The command `permissions`: what the plugins of an application use, as LANE_PERMISSIONS.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { neededByLanes } from '../../core/config/checks.ts'
import { CommandError } from '../../core/config/command-line.ts'
import { copyEnvironment, loadSettings } from '../../core/config/load.ts'
import { shown } from '../../core/errors/places.ts'
import { isReadByLanes } from '../../primary/supervision/lane-permissions.ts'
import { command } from './command.ts'

const USAGE = `Usage: heddle permissions [words]
  runs the tests whose path has one of the words, all without, and prints what plugins used in them: a line LANE_PERMISSIONS=… for .env
  Node 24 or 26 tells it`
const COMMAND = join(import.meta.dirname, '../../heddle.cjs')

/** One line of what the tests have noted. */
export interface Use {
  item: string
  /** Of `fs-read` and `fs-write`. */
  path?: string
  /** A file of the application, or a package. */
  by: string
}

export const permissions = command(USAGE, {}, (_, words) => {
  if (!process.allowedNodeEnvironmentFlags.has('--permission-audit'))
    throw new CommandError(`Node ${process.versions.node} does not tell what plugins use: run this on Node 24 or 26`)
  const { settings } = loadSettings({ ...copyEnvironment(), LANE_PERMISSIONS: '' })
  const folder = mkdtempSync(join(tmpdir(), 'heddle-permissions-'))
  const file = join(folder, 'used')
  try {
    const env = { ...copyEnvironment(), LANE_PERMISSIONS: '', HEDDLE_PERMISSIONS: file }
    const { status } = spawnSync(process.execPath, [COMMAND, 'test', ...words], { env, stdio: 'inherit' })
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
    const uses = lines.map((line): Use => JSON.parse(line))
    console.log(
      reportOf(
        uses.filter(({ path }) => path === undefined || !isReadByLanes(settings, path)),
        neededByLanes(settings),
      ),
    )
    process.exitCode = status ?? 1
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** @param needed items that every lane needs */
export function reportOf(uses: readonly Use[], needed: readonly string[]): string {
  const places = foldersOf(uses)
  const users = new Map<string, Set<string>>(needed.map((item) => [item, new Set(['every lane'])]))
  for (const { item, path, by } of uses) {
    const name = path === undefined ? item : `${item}:${short(places.find((place) => isIn(path, place)) ?? path)}`
    users.set(name, (users.get(name) ?? new Set()).add(by))
  }
  const items = [...users.keys()].sort()
  const width = Math.max(...items.map(({ length }) => length))
  const lines = items.map((name) => `  ${name.padEnd(width)}  ${[...users.get(name)!].sort().join(', ')}`)
  return [
    '',
    'What plugins used in these tests, as LANE_PERMISSIONS:',
    ...lines,
    '',
    `LANE_PERMISSIONS=${items.join() || 'none'}`,
  ].join('\n')
}

const isIn = (path: string, place: string): boolean => path === place || path.startsWith(join(place, '/'))

const short = (path: string): string => (shown(path).startsWith('/') ? path : `./${shown(path)}`)

/** Files stand for themselves; several of a folder, and those that are gone by now, for it: it will have others. */
function foldersOf(uses: readonly Use[]): string[] {
  const paths = [...new Set(uses.flatMap(({ path }) => path ?? []))]
  const counts = new Map<string, number>()
  for (const path of paths) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  const folders = paths.map((path) => {
    const folder = dirname(path)
    const isOpen = isIn(folder, process.cwd()) && folder !== process.cwd()
    if (!isIn(path, process.cwd()) && isIn(path, tmpdir())) return tmpdir()
    return isOpen && (counts.get(folder)! > 1 || !existsSync(path)) ? folder : path
  })
  return folders.filter((one) => !folders.some((other) => other !== one && isIn(one, other)))
}
