import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { haveEnded, processTree, signalAll } from './process-tree.ts'
import type { WardenNote } from './warden.ts'

/** Time for a server to end in order before it is killed. */
const PATIENCE_MS = 5_000

const pids = new Set<number>()
const folders = new Set<string>()

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const note = JSON.parse(line) as WardenNote
    if ('pid' in note) pids.add(note.pid)
    else if ('folder' in note) folders.add(note.folder)
    else {
      pids.delete(note.forget as number)
      folders.delete(note.forget as string)
    }
  })
  .on('close', () => void cleanUp())

/** The pipe is closed: whoever took the notes down has ended. */
async function cleanUp(): Promise<void> {
  await Promise.all([...pids].map(endTree))
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

async function endTree(pid: number): Promise<void> {
  const tree = processTree(pid)
  // A frozen process hears nothing but SIGKILL; one that ends in order gives its shared memory back.
  signalAll(tree, 'SIGCONT')
  signalAll([pid], 'SIGINT')
  if (!(await haveEnded(tree, PATIENCE_MS))) signalAll(tree, 'SIGKILL')
  await haveEnded(tree, PATIENCE_MS)
}
