import { chmod } from 'node:fs/promises'
import { connect } from 'node:net'
import { freePort } from '../port.ts'
import { programFor, type ServerOwner } from './provide.ts'
import { makeServerFolder, removeServerFolder } from './server-folder.ts'
import { ServerProcess } from './server-process.ts'

const HOST = '127.0.0.1'

export interface NginxServer {
  /** Holds `nginx.conf` and whatever else `configure` wrote. */
  readonly directory: string
  readonly ports: readonly number[]
  /** Reads its configuration anew, as after an edit. */
  reload(): void
  stop(signal?: NodeJS.Signals): Promise<void>
  start(): Promise<void>
}

export interface NginxOptions {
  /** How many ports it listens on. */
  ports?: number
  /** Writes `nginx.conf` into the folder; it must listen on 127.0.0.1 at the given ports. Relative paths start from the folder. */
  configure(directory: string, ports: readonly number[]): Promise<void>
}

/**
 * A real nginx that ends with the test.
 * @returns null where none can be had: the test is skipped then, or has failed with `CI=true`
 */
export async function nginxServer(t: ServerOwner, options: NginxOptions): Promise<NginxServer | null> {
  const program = await programFor(t, 'nginx')
  if (program === null) return null
  const directory = await makeServerFolder('nginx')
  // Its workers give up root.
  await chmod(directory, 0o755)
  const ports: number[] = []
  while (ports.length < (options.ports ?? 1)) ports.push(await freePort())
  await options.configure(directory, ports)
  const server = new ServerProcess({
    command: program,
    args: ['-p', directory, '-c', 'nginx.conf', '-e', 'stderr', '-g', 'daemon off;'],
    directory,
    isReady: async () => (await Promise.all(ports.map(accepts))).every(Boolean),
  })
  t.after(async () => {
    await server.stop('SIGTERM')
    await removeServerFolder(directory)
  })
  await server.start()
  return {
    directory,
    ports,
    reload: () => {
      process.kill(server.pid!, 'SIGHUP')
    },
    stop: (signal = 'SIGTERM') => server.stop(signal),
    start: () => server.start(),
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: HOST })
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}
