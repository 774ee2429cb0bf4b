import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../support/port.ts'
import { postgresServer } from '../support/servers/postgres.ts'
import { programFor, type ServerOwner } from '../support/servers/provide.ts'
import { redisServer } from '../support/servers/redis.ts'
import { makeServerFolder, removeServerFolder } from '../support/servers/server-folder.ts'
import { ServerProcess } from '../support/servers/server-process.ts'
import type { Need } from './entries.ts'
import { startLoopback } from './loopback.ts'

type Starter = (owner: ServerOwner) => Promise<Record<string, string> | null>

/** What packages need, each started once. */
export class Needs {
  readonly #owner: ServerOwner
  readonly #started = new Map<Need, ReturnType<Starter>>()

  constructor(owner: ServerOwner) {
    this.#owner = owner
  }

  /** @returns the variables with their addresses; null where this machine has not all of them */
  async env(needs: readonly Need[]): Promise<Record<string, string> | null> {
    const env: Record<string, string> = {}
    for (const need of needs) {
      const starting = this.#started.get(need) ?? STARTERS[need](this.#owner)
      this.#started.set(need, starting)
      const own = await starting
      if (own === null) return null
      Object.assign(env, own)
    }
    return env
  }
}

const MARIADB = '/usr/sbin/mariadbd'

const STARTERS: Readonly<Record<Need, Starter>> = {
  loopback: startLoopback,
  postgres: async (owner) => {
    const server = await postgresServer(owner)
    if (server === null) return null
    const { user, password, host, port, database } = server
    return { TRIAL_PG: `postgres://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}` }
  },
  redis: async (owner) => {
    const server = await redisServer(owner)
    return server && { TRIAL_REDIS: `redis://:${server.password}@${server.host}:${server.port}` }
  },
  chromium: async (owner) => {
    const program = await programFor(owner, 'chromium')
    return program === null ? null : { TRIAL_CHROMIUM: program }
  },
  mysql: async (owner) => {
    if (!existsSync(MARIADB)) {
      owner.skip('needs MariaDB: apt-get install mariadb-server')
      return null
    }
    const directory = await makeServerFolder('mariadb')
    const data = join(directory, 'data')
    execFileSync('mariadb-install-db', [
      '--no-defaults',
      `--datadir=${data}`,
      '--auth-root-authentication-method=normal',
    ])
    const port = await freePort()
    const isRoot = process.getuid?.() === 0 ? ['--user=root'] : []
    const args = [
      '--no-defaults',
      `--datadir=${data}`,
      `--socket=${data}/socket`,
      '--bind-address=127.0.0.1',
      `--port=${port}`,
    ]
    const server = new ServerProcess({
      command: MARIADB,
      args: [...args, ...isRoot],
      directory,
      isReady: () => answers(port),
    })
    owner.after(async () => {
      await server.stop('SIGKILL')
      await removeServerFolder(directory)
    })
    await server.start()
    return { TRIAL_MYSQL: `mysql://root@127.0.0.1:${port}/test` }
  },
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('data', () => socket.destroy() && resolve(true)).once('error', () => resolve(false))
  })
}
