import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packedManifest } from '../../../deploy/package/manifest.mjs'
import { linkTree, placeDist } from '../../support/built-package.ts'
import { OUTER, type Outcome, run as runCommand } from '../../support/command.ts'
import { endWithProcess } from '../../support/process-end.ts'
import { processTree, signalAll } from '../../support/servers/process-tree.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')

/** Runs a program of an application to its end. @param env added to what it inherits */
export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<Outcome> {
  return runCommand(program, args, cwd, { ...OUTER, ...env })
}

/** A folder with the packed file of this checkout, gone when `end` is called. */
export interface Packed {
  folder: string
  first: string
  /** Packs the next version, 99.0.0. @returns its file */
  packNext(): Promise<string>
  end(): void
}

export async function packOne(): Promise<Packed> {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-package-'))
  const source = join(folder, 'source')
  mkdirSync(source)
  await placeDist(join(source, 'dist'))
  for (const name of ['README.md', 'CHANGELOG.md', 'LICENSE']) cpSync(join(ROOT, name), join(source, name))
  const manifest = packedManifest(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')))
  const packAs = (version: unknown) => {
    writeFileSync(join(source, 'package.json'), JSON.stringify({ ...manifest, version }))
    return pack(source, folder)
  }
  const first = await packAs(manifest.version)
  const end = () => rmSync(folder, { recursive: true, force: true })
  return { folder, first, packNext: () => packAs('99.0.0'), end }
}

/** The packed file, and folders in which it and the next version, 99.0.0, are installed: an application has a link to one of them. */
export interface Installed extends Packed {
  current: string
  next: string
  /** Has what heddle depends on, and none of the packages that an application may install for it. */
  bare: string
}

let shared: Promise<Installed> | undefined

/** Once for a process: packing compiles everything. */
export function sharedPackage(): Promise<Installed> {
  shared ??= packAndInstall()
  return shared
}

async function packAndInstall(): Promise<Installed> {
  const packed = await packOne()
  const [current, next, bare] = ['current', 'next', 'bare'].map((name) => join(packed.folder, name)) as [
    string,
    string,
    string,
  ]
  const place = placeOf(current)
  mkdirSync(place, { recursive: true })
  const { code, output } = await run('tar', ['-xzf', packed.first, '-C', place, '--strip-components', '1'], current)
  if (code !== 0) throw new Error(output)
  for (const folder of [next, bare]) linkTree(place, placeOf(folder))
  const manifest = join(placeOf(next), 'package.json')
  const text = readFileSync(manifest, 'utf8')
  rmSync(manifest)
  writeFileSync(manifest, JSON.stringify({ ...JSON.parse(text), version: '99.0.0' }))
  for (const folder of [current, next]) addPackages(folder, readdirSync(MODULES))
  const { dependencies, optionalDependencies } = JSON.parse(text)
  addPackages(bare, neededBy([...Object.keys(dependencies), ...Object.keys(optionalDependencies)]))
  endWithProcess(async () => packed.end())
  return { ...packed, current, next, bare }
}

const placeOf = (folder: string): string => join(folder, 'node_modules/heddle')

/** Puts heddle, as it is packed from this checkout, and the packages that are here into a folder. */
export async function placePackage(folder: string): Promise<void> {
  await placeDist(join(placeOf(folder), 'dist'))
  const manifest = packedManifest(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')))
  writeFileSync(join(placeOf(folder), 'package.json'), JSON.stringify(manifest))
  addPackages(folder, readdirSync(MODULES))
}

async function pack(source: string, folder: string): Promise<string> {
  const before = new Set(readdirSync(folder))
  const { code, output } = await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], source)
  const made = readdirSync(folder).find((name) => !before.has(name))
  if (code !== 0 || made === undefined) throw new Error(output)
  return join(folder, made)
}

/** Names of packages that are here, and of those that they need. */
function neededBy(names: readonly string[]): Set<string> {
  const waiting = [...names]
  const found = new Set<string>()
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const manifest = join(MODULES, name, 'package.json')
    if (found.has(name) || !existsSync(manifest)) continue
    found.add(name)
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(readFileSync(manifest, 'utf8'))
    waiting.push(...Object.keys(dependencies), ...Object.keys(optionalDependencies))
  }
  return found
}

/** Packages of this checkout. */
function addPackages(folder: string, names: Iterable<string>): void {
  const modules = join(folder, 'node_modules')
  for (const name of names) {
    if (name.startsWith('.') || existsSync(join(modules, name))) continue
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(MODULES, name), join(modules, name))
  }
  const { bin } = JSON.parse(readFileSync(join(placeOf(folder), 'package.json'), 'utf8'))
  const program = join(placeOf(folder), bin.heddle)
  mkdirSync(join(modules, '.bin'))
  symlinkSync(program, join(modules, '.bin/heddle'))
  chmodSync(program, 0o755)
}

/** As `npm install` does, without the network and a copy. @param installed a folder of `sharedPackage` */
export async function install(app: string, installed: string): Promise<void> {
  const modules = join(app, 'node_modules')
  rmSync(modules, { force: true })
  symlinkSync(join(installed, 'node_modules'), modules)
}

/** A running application. */
export interface Served {
  process: ChildProcess
  url: string
  output(): string
  /** Ends it in order. @returns its exit code */
  stop(): Promise<number | null>
}

/** `heddle <command>`, until it serves. */
export async function serve(app: string, command: string[], env: Record<string, string> = {}): Promise<Served> {
  const child = spawn(join(app, 'node_modules/.bin/heddle'), command, {
    cwd: app,
    env: { ...OUTER, HTTP_PORT: '0', LANES: '1', LOG_FORMAT: 'json', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk) => (text += chunk))
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => {
      const found = /Serving on (http:\/\/[\d.:]+)/.exec(text)
      if (found) resolve(found[1]!)
    })
    child.once('exit', (code) => reject(new Error(`It ended with ${code}\n${text}`)))
  })
  return {
    process: child,
    url,
    output: () => text,
    stop: async () => {
      if (child.exitCode !== null) return child.exitCode
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      return (await exited)[0] as number | null
    },
  }
}

/** Ends what a test has left behind. */
export function end(served: Served): void {
  if (served.process.exitCode === null && served.process.signalCode === null)
    signalAll(processTree(served.process.pid!), 'SIGKILL')
}
