// npm run test:chaos: faults of every kind while clients write; afterwards nothing that was promised may be missing.
// With --kill-process the faults end the whole process.
import { writeFileSync } from 'node:fs'
import { parseArguments, USAGE } from './arguments.ts'
import { runChaos } from './chaos.ts'
import { ProcessGuard } from './process-guard.ts'
import { formatReport, isPassed } from './report.ts'

const EXIT_USAGE = 64

async function main(): Promise<void> {
  const options = argumentsOrExit()
  console.log(`Chaos with seed ${options.seed}: ${options.seconds} s, ${options.lanes} lanes`)
  const guard = new ProcessGuard()
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.once(signal, () => void guard.end().then(() => process.exit(code)))
  try {
    const report = await runChaos(options, guard)
    console.log(`\n${formatReport(report)}`)
    if (options.json !== null) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
    if (!isPassed(report)) process.exitCode = 1
  } catch (error) {
    console.error(`Failed with seed ${options.seed}:`, error)
    process.exitCode = 1
  } finally {
    await guard.end()
  }
}

function argumentsOrExit() {
  try {
    return parseArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`)
    process.exit(EXIT_USAGE)
  }
}

void main()
