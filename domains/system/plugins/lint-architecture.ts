import { type LintReport, plugin } from '#heddle'
import { lintReport } from '../lint-report.ts'

const options = {
  tags: ['system'],
  summary: 'The architecture lint',
  description: 'Isolation, contracts, tables, routes, migrations, and what the process shows besides.',
}

/** Checks the architecture of all domains on request. */
export default plugin(
  ({ http, config, event_bus, registry }) => {
    /** The current run. Requests that come meanwhile share it. */
    let run: Promise<LintReport> | undefined
    http.get('/system/lint', options, (): Promise<LintReport> => {
      run ??= lintReport({ config, event_bus, registry }).finally(() => {
        run = undefined
      })
      return run
    })
  },
  { thread: 'primary' },
)
