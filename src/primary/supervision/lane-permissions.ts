// The seat belts of lanes, LANE_PERMISSIONS: Node's permission model, whose flags bind the thread alone that is started with them.
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Settings } from '../../core/config/schema.ts'
import { readable } from '../../core/errors/description.ts'
import { keptFolder, PACKAGES, ROOT, SOURCE } from '../../preload/kept-folder.cjs'
import { stripAhead } from '../../preload/typescript/strip-ahead.cjs'

const FLAGS: Readonly<Record<string, string>> = {
  'fs-read': '--allow-fs-read',
  'fs-write': '--allow-fs-write',
  child: '--allow-child-process',
  worker: '--allow-worker',
  addons: '--allow-addons',
  net: '--allow-net',
}

/**
 * What binds each lane, beside what is listed.
 * `--allow-inspector`: a lane stops what has called `process.exit` in it by the inspector. Node 22 has no such flag: there the lane ends at once.
 * `--interactive`: without it Node lets a thread read the current folder, with its `.env`. It has no other effect in a thread.
 */
const ALWAYS = ['--permission', '--allow-inspector', '--interactive', '--disable-warning=SecurityWarning']

interface LaneFlags {
  /** Its other ones, and NODE_OPTIONS: what they load first is readable, too. */
  flags: readonly string[]
  /** Where lanes write what they begin; null without a guardian. */
  flightFolder: string | null
  /** Nothing is refused, and all is told: `heddle permissions`. */
  isAudited: boolean
}

/** Without the others it would refuse what they stand for. */
const AUDIT = ['--permission-audit', '--allow-addons', ...ALWAYS.filter((flag) => flag !== '--permission')]

/** Flags of a lane's thread; none where LANE_PERMISSIONS is not set. */
export function permissionFlags(settings: Settings, { flags, flightFolder, isAudited }: LaneFlags): string[] {
  const { lanePermissions } = settings
  if (isAudited) return AUDIT
  if (lanePermissions.length === 0) return []
  const items = lanePermissions.map(splitItem)
  const paths = (kind: string, own: readonly string[]): string[] => {
    const asked = items.flatMap(([of, path]) => (of === kind ? [path ?? '*'] : []))
    return granted([...withTargets(own), ...asked]).map((path) => `${FLAGS[kind]}=${path}`)
  }
  return [
    ...ALWAYS.filter((flag) => flag !== '--allow-inspector' || process.allowedNodeEnvironmentFlags.has(flag)),
    ...paths('fs-read', [...readByLanes(settings), ...flags.flatMap(filesIn)]),
    ...paths('fs-write', writtenByLanes(settings, flightFolder)),
    ...items.flatMap(([kind, path]) => (path === undefined && !kind.startsWith('fs') ? (FLAGS[kind] ?? []) : [])),
    // Node calls it an experiment in each thread.
    ...(lanePermissions.includes('net') ? ['--disable-warning=ExperimentalWarning'] : []),
  ]
}

/**
 * As Node takes them. It loses a folder, but not what is in it, where it has another path below it, or one whose name begins with the folder's name. A
 * folder that is made later is one, too.
 */
function granted(paths: readonly string[]): string[] {
  if (paths.includes('*')) return ['*']
  const all = [...new Set(paths.map((path) => resolve(path)))]
  const outer = all.filter((path) => !all.some((other) => path.startsWith(join(other, '/'))))
  return outer.flatMap((path) => {
    if (isFile(path) || path.endsWith('*')) return path
    if (outer.some((other) => other !== path && other.startsWith(path))) return `${path}*`
    return existsSync(path) ? path : [path, join(path, '*')]
  })
}

const OWN = ['', '../workers', '../domains/system'].map((folder) => join(SOURCE, folder))

/** `fs-read:/app/data` → `fs-read`, `/app/data` */
function splitItem(item: string): [kind: string, path?: string] {
  const at = item.indexOf(':')
  return at < 0 ? [item] : [item.slice(0, at), item.slice(at + 1)]
}

/** The files that a flag names, in one word or in several. */
const filesIn = (flag: string): string[] =>
  flag
    .split(/[\s"=]+/)
    .map((word) => (word.startsWith('file:') ? fileURLToPath(word) : word))
    .filter((word) => /^\.{0,2}\//.test(word) && isFile(word))
    .map((word) => resolve(word))

const isFile = (path: string): boolean => readable(() => statSync(path).isFile()) === true

const databaseFiles = ({ sqlitePath }: Settings): string[] =>
  ['', '-wal', '-shm', '-journal'].map((ending) => sqlitePath + ending)

/** No folder of `/proc`: each has `environ`, with the secrets of the process. */
function readByLanes(settings: Settings): string[] {
  const { domainsDir, toolsDir, rdbCaFile, kvCaFile } = settings
  const around = [...domainsDir, toolsDir, resolve('tools')].flatMap(aroundOf)
  return [
    ...[...OWN, join(ROOT, 'package.json'), PACKAGES, keptFolder],
    ...[...domainsDir, toolsDir, join(toolsDir, '../extras'), resolve('tools')],
    ...around,
    ...new Set([PACKAGES, ...around.filter((path) => path.endsWith('node_modules'))].flatMap(linkedIn)),
    ...databaseFiles(settings),
    ...[rdbCaFile, kvCaFile, '/dev/null', '/proc/thread-self/stat'],
  ].filter((path) => path != null)
}

/** True for what a lane reads, or a plugin in it, whatever is listed. */
export const isReadByLanes = (settings: Settings, path: string): boolean =>
  withTargets(readByLanes(settings)).some((each) => path === each || path.startsWith(join(each, '/')))

/** Packages that stand elsewhere, as those of a workspace do, with what they find there: Node asks for the files behind the links. */
function linkedIn(packages: string): string[] {
  const entries = readable(() => readdirSync(packages, { withFileTypes: true })) ?? []
  return entries.flatMap((entry) => {
    const path = join(packages, entry.name)
    if (entry.isDirectory()) return entry.name.startsWith('@') ? linkedIn(path) : []
    const target = entry.isSymbolicLink() ? readable(() => realpathSync(path)) : undefined
    return target === undefined ? [] : [target, ...aroundOf(target)]
  })
}

/** What modules of a folder look for in those above it. */
const aroundOf = (folder: string): string[] =>
  parentsOf(folder).flatMap((each) => ['node_modules', 'package.json', 'tsconfig.json'].map((name) => join(each, name)))

const parentsOf = (folder: string): string[] =>
  dirname(folder) === folder ? [folder] : [folder, ...parentsOf(dirname(folder))]

const writtenByLanes = (settings: Settings, flightFolder: string | null): string[] => [
  ...databaseFiles(settings),
  ...(flightFolder === null ? [] : [flightFolder]),
]

/** Node looks at the path that is asked for, and then at the file behind the links. */
const withTargets = (paths: readonly string[]): string[] => [
  ...new Set(paths.flatMap((path) => [path, readable(() => realpathSync(path)) ?? path])),
]

/** A lane that may start no process cannot start esbuild: what it may read is stripped before it comes. */
export async function stripForLanes({ lanePermissions, domainsDir, toolsDir }: Settings): Promise<void> {
  if (lanePermissions.length === 0 || lanePermissions.includes('child')) return
  const listed = lanePermissions.flatMap((item) => splitItem(item)[1] ?? [])
  await stripAhead([...OWN, ...domainsDir, toolsDir, 'tools', ...listed].flatMap((each) => sourcesIn(resolve(each))))
}

/** Of a folder, with all in it, or a file itself. */
function sourcesIn(path: string): string[] {
  if (isFile(path)) return /(?<!\.d)\.ts$/.test(path) ? [path] : []
  const names = readable(() => readdirSync(path)) ?? []
  return names.flatMap((name) => (name === 'node_modules' ? [] : sourcesIn(join(path, name))))
}
