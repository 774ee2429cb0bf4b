import { ConfigFaults, EXIT_CONFIG, loadSettings } from '../config/load.ts'
import { lintArchitecture } from '../lint/report.ts'

/** Prints the report of `/system/lint`. Exits with 1 when it holds an error. */
try {
  const { settings } = loadSettings()
  const { ok, findings, checked } = await lintArchitecture(settings.domainsDir, settings.toolsDir)
  for (const { file, line, severity, rule, message } of findings) {
    console.log(`${file}:${line}  ${severity}  ${rule}  ${message}`)
  }
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const counts = Object.entries(checked).map(([what, count]) => `${what} ${count}`)
  console.log(`errors ${errors}, warnings ${findings.length - errors}; checked: ${counts.join(', ')}`)
  process.exitCode = ok ? 0 : 1
} catch (error) {
  if (!(error instanceof ConfigFaults)) throw error
  console.error(error.message)
  process.exitCode = EXIT_CONFIG
}
