import type { SourceOrder, SourceReport } from './source-reader.ts'
import { readSources } from './sources.ts'
import { onParse } from './syntax.ts'

// The entry of a process that reads the sources of the domains once. It tells which file it is about to parse, then what it has found.

const tell = (report: SourceReport): boolean => process.send!(report)
onParse((file) => tell({ parsing: file }))

process.once('message', ({ domainsDirs, toolsDir, unreadable }: SourceOrder) => {
  readSources(domainsDirs, toolsDir, unreadable).then(
    (facts) => tell({ facts }),
    (error) => tell({ failure: String(error) }),
  )
})
process.once('disconnect', () => process.exit(0))
// Something that was preloaded may have let go of it.
process.channel?.ref()
