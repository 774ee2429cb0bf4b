// Measurements in a process of their own, and what a case has started and ends.
import { fork } from 'node:child_process'
import { once } from 'node:events'

/**
 * Runs a module of the benchmark in a process of its own, which takes the plan by `planOf` and sends its figures by `sendFigures`.
 * @param path below `bench/`
 * @param profileDir where the process leaves its CPU profile
 * @throws when it ends without figures
 */
export async function inChild<Plan, Figures>(path: string, plan: Plan, profileDir?: string): Promise<Figures> {
  const child = fork(new URL(path, import.meta.url), [JSON.stringify(plan)], {
    execArgv: [
      '--import',
      import.meta.resolve('tsx'),
      ...(profileDir ? ['--cpu-prof', `--cpu-prof-dir=${profileDir}`] : []),
    ],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const exited = once(child, 'exit')
  const figures = await Promise.race([
    once(child, 'message').then(([message]) => message as Figures),
    exited.then(([code]) => {
      throw new Error(`${path} ended with code ${code} before it had figures`)
    }),
  ])
  await exited
  return figures
}

/** In that process: what it is to do. */
export const planOf = <Plan>(): Plan => JSON.parse(process.argv[2]!) as Plan

/** In that process: its figures, once. It ends when nothing else keeps it. */
export function sendFigures<Figures>(figures: Figures): void {
  process.send?.(figures, () => process.disconnect())
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
