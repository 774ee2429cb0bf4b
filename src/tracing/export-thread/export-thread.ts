/** Entry of the exporting thread: a process has one while tracing is on. */
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { ExportInit, FromExporter, ToExporter } from '../export-messages.ts'
import { Exporter } from './exporter.ts'

/** Lower priority than the threads that answer requests; niceness is 0 to 19. */
const NICENESS = 10

/** On Linux each thread has its own priority, which is set by the thread's number. */
function giveWay(): void {
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), NICENESS)
  } catch {
    // Not Linux, or not allowed: the thread keeps the normal priority.
  }
}

giveWay()
const port = parentPort!
const { settings, sources } = workerData as ExportInit
const tell = (message: FromExporter): void => port.postMessage(message)
const exporter = new Exporter(settings, tell)
for (const source of sources) exporter.add(source)
port.on('message', (message: ToExporter) => {
  switch (message.type) {
    case 'source':
      return exporter.add(message.source)
    case 'source-gone':
      return exporter.remove(message.id)
    case 'flush':
      void exporter.flush(message.withinMs).then((left) => tell({ type: 'flushed', left }))
  }
})
void exporter.start()
