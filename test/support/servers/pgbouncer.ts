import { chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../port.ts'
import { asAdministrator, type PostgresServer, unprivilegedUser } from './postgres.ts'
import { programFor, type ServerOwner } from './provide.ts'
import { makeServerFolder, removeServerFolder } from './server-folder.ts'
import { ServerProcess } from './server-process.ts'

const HOST = '127.0.0.1'

export interface PgBouncerServer {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  /** The server's environment, with the address of the pooler. */
  readonly env: Record<string, string>
  /** Changes settings, of which `pool_mode` is one, while clients are connected. */
  reload(settings: Record<string, string>): Promise<void>
  stop(): Promise<void>
  start(): Promise<void>
}

export type PoolMode = 'session' | 'transaction' | 'statement'

/**
 * A real PgBouncer in front of a PostgreSQL, which ends with the test.
 * @param settings of its section `[pgbouncer]`
 * @returns null where none can be had: the test is skipped then, or has failed with `CI=true`
 */
export async function pgBouncerServer(
  t: ServerOwner,
  postgres: PostgresServer,
  poolMode: PoolMode,
  settings: Record<string, string> = {},
): Promise<PgBouncerServer | null> {
  const program = await programFor(t, 'pgbouncer')
  if (program === null) return null
  const user = await unprivilegedUser()
  const directory = await makeServerFolder('pgbouncer', user)
  const port = await freePort()
  const access = { host: HOST, port, user: postgres.user, password: postgres.password }
  const configuration = join(directory, 'pgbouncer.ini')
  const users = join(directory, 'userlist.txt')
  let current: Record<string, string> = {
    listen_addr: HOST,
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    admin_users: postgres.user,
    pool_mode: poolMode,
    ...settings,
  }
  const write = async (): Promise<void> => {
    const lines = Object.entries(current).map(([name, value]) => `${name} = ${value}`)
    const text = `[databases]\n* = host=${postgres.host} port=${postgres.port}\n[pgbouncer]\n${lines.join('\n')}\n`
    await writeFile(configuration, text, { mode: 0o600 })
    if (user !== undefined) await chown(configuration, user.uid, user.gid)
  }
  await writeFile(users, `"${postgres.user}" "${postgres.password}"\n`, { mode: 0o600 })
  if (user !== undefined) await chown(users, user.uid, user.gid)
  await write()
  const server = new ServerProcess({
    command: program,
    args: [configuration],
    directory,
    isReady: () => asAdministrator(access, 'SHOW VERSION', 'pgbouncer').then(yes, no),
    ...(user === undefined ? {} : { user }),
  })
  t.after(async () => {
    await server.stop('SIGKILL')
    await removeServerFolder(directory)
  })
  await server.start()
  return {
    ...access,
    env: { ...postgres.env, RDB_HOST: HOST, RDB_PORT: String(port) },
    reload: async (changes) => {
      current = { ...current, ...changes }
      await write()
      await asAdministrator(access, 'RELOAD', 'pgbouncer')
    },
    stop: () => server.stop('SIGKILL'),
    start: () => server.start(),
  }
}

const yes = (): boolean => true
const no = (): boolean => false
