import { constants, fstatSync, openSync, statSync, writeSync } from 'node:fs'

const STDOUT_FD = 1

/** Writes to standard output without waiting for who reads it. */
export function standardOutput(): (bytes: Buffer | string) => number {
  const fd = unblockedOutput()
  return (bytes) => (typeof bytes === 'string' ? writeSync(fd, bytes) : writeSync(fd, bytes))
}

/** Standard output as a descriptor that never makes a writer wait. A file has no reader, and is left as it is. */
function unblockedOutput(): number {
  const isFile = fstatSync(STDOUT_FD).isFile()
  // Node's `realpathSync` looks at what was asked last, whatever that was: after a pipe or a socket it takes the next path as it is, and a
  // module behind a link is loaded under the wrong name. So the last is a folder.
  statSync('.')
  if (isFile) return STDOUT_FD
  try {
    // The terminal's own description: another process that writes to it is not to be surprised.
    if (process.stdout.isTTY) {
      const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
      return openSync('/proc/self/fd/1', O_WRONLY | O_NONBLOCK | O_NOCTTY)
    }
  } catch {
    // A system that has no such folder, or a terminal of another user: its writers wait.
  }
  // The stream of Node makes a pipe or a socket one that does not wait, as soon as it exists (`uv_pipe_open`), and undoes it at the end.
  void process.stdout.writable
  return STDOUT_FD
}
