import { execFileSync } from 'node:child_process'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '../rooms/package/packed.ts'
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

  /** `npm test` of the files whose path has one of the words. @param options of `npm test` */
  async test(program: NodeProgram, words: readonly string[], options: readonly string[] = []): Promise<void> {
    const env = { ...process.env, ...program.env } as Record<string, string>
    const runner = ['--require', './test/support/typescript/register.cjs', 'test/run.ts']
    const { code, output } = await run('node', [...runner, ...options, ...words], this.#folder, env)
    if (code !== 0) throw new Error(output)
  }
}
