import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../port.ts'
import { programFor, type ServerOwner } from './provide.ts'
import { makeServerFolder, removeServerFolder } from './server-folder.ts'
import { ServerProcess } from './server-process.ts'

const run = promisify(execFile)

export interface PrometheusServer {
  /** `data` of an answer of its API. @param path below `/api/v1/` @throws what it says is wrong */
  ask<T>(path: string, query?: Record<string, string>): Promise<T>
  /** Runs promtool. @returns what it has printed @throws with that, where it fails */
  check(...args: string[]): Promise<string>
}

/**
 * A real Prometheus that ends with the test.
 * @param configuration its text
 * @returns null where none can be had: the test is skipped then, or has failed with `CI=true`
 */
export async function prometheusServer(t: ServerOwner, configuration: string): Promise<PrometheusServer | null> {
  const program = await programFor(t, 'prometheus')
  if (program === null) return null
  const directory = await makeServerFolder('prometheus')
  const url = `127.0.0.1:${await freePort()}`
  await writeFile(join(directory, 'prometheus.yml'), configuration)
  const server = new ServerProcess({
    command: program,
    args: ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${url}`],
    directory,
    isReady: async () => (await fetch(`http://${url}/-/ready`).catch(() => null))?.status === 200,
  })
  t.after(async () => {
    await server.stop('SIGTERM')
    await removeServerFolder(directory)
  })
  await server.start()
  return {
    async ask<T>(path: string, query: Record<string, string> = {}) {
      const response = await fetch(`http://${url}/api/v1/${path}?${new URLSearchParams(query)}`)
      const answer = (await response.json()) as { status: string; data: T; error?: string }
      if (answer.status !== 'success') throw new Error(`${path} ${JSON.stringify(query)}: ${answer.error}`)
      return answer.data
    },
    async check(...args) {
      const { stdout, stderr } = await run(join(dirname(program), 'promtool'), args)
      return stdout + stderr
    },
  }
}
