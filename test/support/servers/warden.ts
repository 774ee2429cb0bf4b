import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** What a warden is told, one JSON text a line. `forget` takes back what one of the others said. */
export type WardenNote = { pid: number } | { folder: string } | { forget: number | string }

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TYPESCRIPT = fileURLToPath(new URL('../typescript/register.cjs', import.meta.url))
let warden: ChildProcess | undefined

/**
 * Notes down what this process would leave behind if it were killed now. Another process keeps the notes: when the pipe from here
 * to there closes, however this process ended, that one ends the servers and removes the folders that are still noted.
 */
export function tellWarden(note: WardenNote): void {
  warden ??= startWarden()
  warden.stdin!.write(`${JSON.stringify(note)}\n`)
}

function startWarden(): ChildProcess {
  const child = spawn(
    process.execPath,
    ['--require', TYPESCRIPT, fileURLToPath(new URL('warden-process.ts', import.meta.url))],
    // In a session of its own: an interrupt from the terminal is not meant for it.
    { cwd: ROOT, stdio: ['pipe', 'ignore', 'ignore'], detached: true },
  )
  child.unref()
  const stdin = child.stdin as typeof child.stdin & { unref(): void }
  stdin.unref()
  stdin.on('error', () => {}) // A warden that was killed takes no notes; the tests still end what they start.
  return child
}
