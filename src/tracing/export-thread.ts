/** Entry of the exporting thread: a process has one while tracing is on. */
import { parentPort, workerData } from 'node:worker_threads'
import { giveWay, takePlace } from '../core/modules/thread-priority.ts'
import type { ExportInit, FromExporter, ToExporter } from './export-messages.ts'
import { Exporter } from './exporter.ts'

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
    case 'hurry':
      takePlace()
      return exporter.hurry()
    case 'flush':
      void exporter.flush(message.withinMs).then((left) => tell({ type: 'flushed', left }))
  }
})
exporter.start()
