import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { SystemUser } from './server-process.ts'

const run = promisify(execFile)
/** Beside the sources without types: it goes with the packages. */
const KEPT = fileURLToPath(new URL('../../../node_modules/.cache/heddle-tests/', import.meta.url))

/** For whom, and in which new folder. */
export interface DataOptions {
  /** The server's. */
  program: string
  superuser: string
  folder: string
  user?: SystemUser | undefined
}

/**
 * Makes `data` in a server's folder as `initdb` does, which takes as long as all that a file's tests do then: it is kept, and copied for the next server.
 * @returns the password of its superuser
 */
export async function makePostgresData(options: DataOptions): Promise<string> {
  const { folder } = options
  const kept = join(KEPT, `postgres-${await keyOf(options)}`)
  try {
    const password = await readFile(join(kept, 'password'), 'utf8')
    await run('cp', ['-Rp', join(kept, 'data'), folder])
    return password
  } catch {
    // Not kept yet, or by somebody whose files are not ours.
    await rm(join(folder, 'data'), { recursive: true, force: true })
  }
  const password = randomBytes(12).toString('hex')
  await initialise(options, password)
  await keep(join(folder, 'data'), password, kept)
  return password
}

/** What the files depend on. */
async function keyOf({ program, superuser, user }: DataOptions): Promise<string> {
  const { mtimeMs, size } = await stat(program)
  const facts = [program, mtimeMs, size, superuser, process.getuid?.(), user?.uid]
  return createHash('sha1').update(JSON.stringify(facts)).digest('hex')
}

async function initialise({ program, superuser, folder, user }: DataOptions, password: string): Promise<void> {
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, password)
  await chmod(passwordFile, 0o600)
  if (user !== undefined) await chown(passwordFile, user.uid, user.gid)
  const args = ['-D', join(folder, 'data'), '-U', superuser, `--pwfile=${passwordFile}`, '--auth=scram-sha-256']
  // With the least log: 1 MB of the 16 that would be written at first.
  const options = ['--no-sync', '--wal-segsize=1', '--encoding=UTF8', '--locale=C']
  await run(join(dirname(program), 'initdb'), [...args, ...options], {
    cwd: folder,
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    ...user,
  })
}

/** Whole or not at all: another process may do the same meanwhile. */
async function keep(data: string, password: string, kept: string): Promise<void> {
  const fresh = `${kept}.${randomBytes(6).toString('hex')}`
  try {
    await mkdir(fresh, { recursive: true })
    await run('cp', ['-Rp', data, fresh])
    await writeFile(join(fresh, 'password'), password, { mode: 0o600 })
    await rename(fresh, kept)
  } catch {
    await rm(fresh, { recursive: true, force: true })
  }
}
