import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, chown, cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { linkTree } from '../../support/built-package.ts'
import type { ServerOwner } from '../../support/servers/provide.ts'
import { type Instruction, pairs, readDockerfile } from './manifests.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Whatever its options are: it would take minutes of the network. */
const INSTALLS = /^npm ci [^&]*/

/** What the Dockerfile makes, in a folder: there need be no engine of containers. */
export interface Image {
  directory: string
  env: Record<string, string>
  entrypoint: string[]
  healthcheck: string[]
  /** Makes it anew, with tools. As an engine does, it keeps what the steps before `ARG TOOLS` have made. */
  remake(tools: readonly string[]): Promise<void>
  /** Runs a command in it as its user would. */
  run(command: readonly string[], env: Record<string, string>): Running
}

export interface Running {
  output: string[]
  exit: Promise<number | null>
  kill(signal: NodeJS.Signals): void
}

/**
 * Carries out the Dockerfile's steps in a temporary folder, without build arguments. What `npm ci` installs is what this checkout has without its
 * development packages: the network and the compiler are not what is tested.
 */
export async function makeImage(t: Pick<ServerOwner, 'after'>): Promise<Image> {
  const directory = await mkdtemp(join(tmpdir(), 'heddle-test-image-'))
  const writable = await mkdtemp(join(tmpdir(), 'heddle-test-volume-'))
  const children = new Set<() => Promise<void>>()
  t.after(async () => {
    for (const end of children) await end()
    await Promise.all([directory, writable].map((path) => rm(path, { recursive: true, force: true })))
  })
  const [build, final] = readDockerfile() as [Instruction[], Instruction[]]
  const instruction = (name: string): string => final.find((one) => one.name === name)!.rest
  const [uid, gid] = instruction('USER').split(':').map(Number) as [number, number]
  const isRoot = process.getuid?.() === 0
  await chmod(directory, 0o755)
  if (isRoot) await chown(writable, uid, gid)
  const start = (command: readonly string[], env: Record<string, string>, user: object): Running => {
    const child = spawn(command[0] === 'node' ? process.execPath : command[0]!, command.slice(1), {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, TMPDIR: writable, ...env },
      ...user,
    })
    const output: string[] = []
    child.stdout.setEncoding('utf8').on('data', (text: string) => output.push(text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => output.push(text))
    const exit = once(child, 'exit').then(([code]) => code as number | null)
    children.add(async () => {
      child.kill('SIGKILL')
      await exit
    })
    return { output, exit, kill: (signal) => child.kill(signal) }
  }
  const carryOut = async (steps: typeof build, tools: readonly string[]): Promise<void> => {
    for (const { name, rest } of steps) {
      if (name === 'COPY') {
        for (const source of rest.split(' ').slice(0, -1)) {
          await cp(join(ROOT, source), join(directory, source), { recursive: true })
        }
      } else if (name === 'RUN') {
        if (INSTALLS.test(rest)) await copyProductionPackages(directory)
        const { exit, output } = start(['sh', '-c', rest.replace(INSTALLS, 'true ')], { TOOLS: tools.join(' ') }, {})
        if ((await exit) !== 0) throw new Error(output.join(''))
      }
    }
  }
  await carryOut(build, [])
  const firstOfTools = build.findIndex(({ name, rest }) => name === 'ARG' && rest.startsWith('TOOLS='))
  return {
    directory,
    env: { ...pairs(instruction('ENV')), SQLITE_PATH: join(writable, 'service.db') },
    entrypoint: JSON.parse(instruction('ENTRYPOINT')),
    healthcheck: JSON.parse(instruction('HEALTHCHECK').replace(/^.*? CMD /, '')),
    remake: (tools) => carryOut(build.slice(firstOfTools), tools),
    run: (command, own) => start(command, own, isRoot ? { uid, gid } : {}),
  }
}

/** The packages that the lock file does not call development ones, and no other. */
async function copyProductionPackages(directory: string): Promise<void> {
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8'))
  const entries = Object.entries(lock.packages as Record<string, { dev?: boolean }>)
  for (const [path, { dev }] of entries) {
    if (path === '' || dev === true || path.includes('/node_modules/') || !existsSync(join(ROOT, path))) continue
    linkTree(join(ROOT, path), join(directory, path))
  }
}
