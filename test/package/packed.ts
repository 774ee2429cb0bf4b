import { type ChildProcess, execFile, spawn } from 'node:child_process'
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
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packedManifest } from '../../deploy/package/manifest.mjs'
import { processTree, signalAll } from '../support/servers/process-tree.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BUILD = join(ROOT, 'deploy/package/build.mjs')
const MODULES = join(ROOT, 'node_modules')
/** Variables that an application inherits. */
const OUTER = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR }

export interface Outcome {
  code: number
  output: string
}

/** Runs a program to its end. @param env added to what it inherits */
export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env: { ...OUTER, ...env }, maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr }),
    )
  })
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
  const built = await run(process.execPath, [BUILD, join(source, 'dist')], ROOT)
  if (built.code !== 0) throw new Error(built.output)
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

/** With the next version. */
export async function packTwo(): Promise<Packed & { next: string }> {
  const packed = await packOne()
  return { ...packed, next: await packed.packNext() }
}

async function pack(source: string, folder: string): Promise<string> {
  const before = new Set(readdirSync(folder))
  const { code, output } = await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], source)
  const made = readdirSync(folder).find((name) => !before.has(name))
  if (code !== 0 || made === undefined) throw new Error(output)
  return join(folder, made)
}

/** What `npm install <file>` does, without the network: the packages that heddle needs are those of this checkout. */
export async function install(app: string, file: string): Promise<void> {
  const modules = join(app, 'node_modules')
  const place = join(modules, 'heddle')
  rmSync(place, { recursive: true, force: true })
  mkdirSync(place, { recursive: true })
  const { code, output } = await run('tar', ['-xzf', file, '-C', place, '--strip-components', '1'], app)
  if (code !== 0) throw new Error(output)
  for (const name of readdirSync(MODULES)) {
    if (name.startsWith('.') || existsSync(join(modules, name))) continue
    symlinkSync(join(MODULES, name), join(modules, name))
  }
  const { bin } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
  const command = join(modules, '.bin/heddle')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  rmSync(command, { force: true })
  symlinkSync(join(place, bin.heddle), command)
  chmodSync(join(place, bin.heddle), 0o755)
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
