/** Entry of the exporting thread: a process has one while tracing is on. */
import type { Settings } from '../core/config/schema.ts'
import { serveSideThread } from '../recording/side-thread-entry.ts'
import { Exporter, type ExportNews } from './exporter.ts'

serveSideThread<Settings, ExportNews>((settings, tell) => new Exporter(settings, tell))
