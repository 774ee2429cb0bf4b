import { execFile } from 'node:child_process'

/** What a program has left behind. */
export interface Outcome {
  code: number
  stdout: string
  stderr: string
  /** Both, the errors last. */
  output: string
}

/** What a child inherits: all, but that it is a test, or node:test in it would run no file. */
export const INHERITED: NodeJS.ProcessEnv = { ...process.env, NODE_TEST_CONTEXT: undefined }
/** What an application of somebody else has. */
export const OUTER = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR }

/** Runs a program to its end. @param env all that it has */
export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = INHERITED,
): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env, maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr, output: stdout + stderr }),
    )
  })
}
