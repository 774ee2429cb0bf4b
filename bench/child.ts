// Measurements in a process of their own, and what a case has started and ends.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** Starts a module of the benchmark in a process of its own. @param path below `bench/` @param profileDir where it leaves its CPU profile */
export function forkModule(
  path: string,
  args: readonly string[] = [],
  { profileDir, env }: { profileDir?: string | undefined; env?: Record<string, string> } = {},
): ChildProcess {
  const profile = profileDir ? ['--cpu-prof', `--cpu-prof-dir=${profileDir}`] : []
  return fork(new URL(path, import.meta.url), args, {
    execArgv: ['--import', import.meta.resolve('tsx'), ...profile],
    env: { ...process.env, NODE_ENV: 'production', ...env },
  })
}

/** The next message of a child. @param name of the child @throws when it ends before */
export async function nextMessage<Message>(child: ChildProcess, name: string): Promise<Message> {
  const settled = new AbortController()
  const { signal } = settled
  try {
    const [message] = await Promise.race([
      once(child, 'message', { signal }),
      // 'close' and not 'exit', because what it has written is read to its end only then.
      once(child, 'close', { signal }).then(([code, killedBy]) => {
        throw new Error(`${name} ended with ${killedBy ?? `code ${code}`}`)
      }),
    ])
    return message as Message
  } finally {
    settled.abort()
  }
}

/**
 * Calls the default export of a module of the benchmark in a process of its own.
 * @param path below `bench/`
 * @param profileDir where the process leaves its CPU profile
 * @throws when it ends without figures
 */
export async function inChild<Measure extends (plan: never) => Promise<unknown>>(
  path: string,
  plan: Parameters<Measure>[0],
  profileDir?: string,
): Promise<Awaited<ReturnType<Measure>>> {
  const child = forkModule('measure.ts', [path, JSON.stringify(plan)], { profileDir })
  const exited = once(child, 'exit')
  const figures = await nextMessage<Awaited<ReturnType<Measure>>>(child, path)
  await exited
  return figures
}

/** Ends the servers that were started for this case. */
export class Owner {
  readonly #ends: (() => unknown)[] = []
  reason = ''

  after(end: () => unknown): void {
    this.#ends.push(end)
  }
  skip(reason?: string): void {
    this.reason = reason ?? ''
  }
  async end(): Promise<void> {
    for (const end of this.#ends.reverse()) await end()
  }
}
