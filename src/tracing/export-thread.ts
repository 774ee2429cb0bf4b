/** The thread that exports spans: a process has one while tracing is on. */
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { DiagLogLevel, diag } from '@opentelemetry/api'
import type { ExportInit, FromExporter, ToExporter } from './export-messages.ts'
import { Exporter } from './exporter.ts'

/** Behind all that answers requests: niceness of 0 to 19. */
const NICENESS = 10

/** Linux gives each thread a priority of its own, by its own number. */
function giveWay(): void {
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), NICENESS)
  } catch {
    // Elsewhere, or not allowed: it takes its share like everybody.
  }
}

/** A receiver that takes a part says so to the library, which tells only its own log. */
function tellOfPartialSuccess(tell: (message: FromExporter) => void): void {
  const warn = (...words: unknown[]): void => {
    const why = words.map((word) => (typeof word === 'string' ? word : JSON.stringify(word))).join(' ')
    if (/partial success/i.test(why)) tell({ type: 'trouble', why: `the receiver took only a part: ${why}`, lost: 0 })
  }
  const none = (): void => {}
  diag.setLogger({ error: none, warn, info: none, debug: none, verbose: none }, DiagLogLevel.WARN)
}

giveWay()
const port = parentPort!
const { settings, sources } = workerData as ExportInit
const tell = (message: FromExporter): void => port.postMessage(message)
tellOfPartialSuccess(tell)
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
