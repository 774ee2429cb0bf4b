import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '../rooms/package/packed.ts'
import type { Outcome } from '../support/command.ts'
import type { NodeProgram } from './node-program.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A copy of the repository with packages of its own. */
export class Checkout {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** What git has, as it stands here, with the packages of the lock file. */
  static async install(folder: string, program: NodeProgram): Promise<Checkout> {
    const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean)
    for (const file of files) if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(folder, file))
    await program.installLocked(folder)
    return new Checkout(folder)
  }

  /**
   * `npm test` of the files whose path has one of the words. As in `.ci/run`, up to three that failed run once more, alone.
   * @param options of `npm test`, both times
   */
  async test(program: NodeProgram, words: readonly string[], options: readonly string[] = []): Promise<void> {
    const failedTo = join(this.#folder, '../failed')
    rmSync(failedTo, { force: true })
    const first = await this.#run(program, [...options, '--failed-to', failedTo, ...words])
    if (first.code === 0) return
    const failed = existsSync(failedTo) ? readFileSync(failedTo, 'utf8').split('\n').filter(Boolean) : []
    if (failed.length === 0) throw new Error(first.output)
    console.log(`${first.output}\nThese failed, and run once more, alone: ${failed.join(', ')}`)
    const again = await this.#run(program, [...options, '--concurrency', '1', ...failed])
    if (again.code !== 0) throw new Error(again.output)
  }

  #run(program: NodeProgram, args: readonly string[]): Promise<Outcome> {
    const env = { ...process.env, ...program.env } as Record<string, string>
    const runner = ['--require', './test/support/typescript/register.cjs', 'test/run.ts']
    return run('node', [...runner, ...args], this.#folder, env)
  }
}
