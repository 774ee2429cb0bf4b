// npm run test:chaos: faults of every kind while clients write; afterwards nothing that was promised may be missing.
// With --kill-process the faults end the whole process.
import { writeFileSync } from 'node:fs'
import { type ChaosArguments, parseArguments, USAGE } from './arguments.ts'
import { runChaos } from './chaos.ts'
import { killProcess } from './kill-process/kill-process.ts'
import { formatKillReport, isKillPassed } from './kill-process/report.ts'
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
    const { report, text, passed } = await outcomeOf(options, guard)
    console.log(`\n${text}`)
    if (options.json !== null) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
    if (!passed) process.exitCode = 1
  } catch (error) {
    console.error(`Failed with seed ${options.seed}:`, error)
    process.exitCode = 1
  } finally {
    await guard.end()
  }
}

async function outcomeOf(options: ChaosArguments, guard: ProcessGuard) {
  if (options.killProcess) {
    const report = await killProcess(options, guard)
    return { report, text: formatKillReport(report), passed: isKillPassed(report) }
  }
  const report = await runChaos(options, guard)
  return { report, text: formatReport(report), passed: isPassed(report) }
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
