import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { EXIT_USAGE, parseFlags, UsageFault } from '../../core/config/arguments.ts'
import { ConfigFaults, EXIT_CONFIG, loadSettings } from '../../core/config/load.ts'
import { messageOf } from '../../core/errors/description.ts'
import { shown } from '../../core/errors/shown-path.ts'
import { bootedClient, clientFrom, runningClient } from '../client/sources.ts'
import { CommandError } from '../command-error.ts'

const USAGE = `Usage: npm run client -- [--out <file>] [--check] [--url <url>] [--boot] [--system]
  writes the typed client of the service: to the terminal, or to a file
  --out <file>  the file
  --check       writes nothing; exit code 1 when the file is not up to date
  --url <url>   of the process that serves at this address; SYSTEM_TOKEN or SYSTEM_READ_TOKEN is the token
  --boot        of the sources, which are booted for it: also while a process is running
  --system      with the routes under /system

Without --url it is the client of the process at HTTP_HOST and HTTP_PORT, and without one of the sources.`

async function main(): Promise<void> {
  try {
    const { values } = parseFlags(USAGE, {
      options: {
        out: { type: 'string' },
        check: { type: 'boolean', default: false },
        url: { type: 'string' },
        boot: { type: 'boolean', default: false },
        system: { type: 'boolean', default: false },
      },
    })
    const { out, check, url, boot, system } = values
    if (check && out === undefined) throw new UsageFault(`--check needs --out: the file to compare\n\n${USAGE}`)
    if (boot && url !== undefined) throw new UsageFault(`Either --boot or --url\n\n${USAGE}`)
    if (url !== undefined && !URL.canParse(url)) throw new UsageFault(`--url takes an address, not ${url}\n\n${USAGE}`)
    const { settings } = loadSettings()
    const { systemToken, systemReadToken } = settings
    const { text, source } =
      url !== undefined
        ? await clientFrom(url, systemReadToken ?? systemToken, system)
        : ((boot ? null : await runningClient(settings, system)) ?? (await bootedClient(settings, system)))
    if (out === undefined) process.stdout.write(text)
    else keep(resolve(out), text, source, check)
  } catch (error) {
    const isUsage = error instanceof UsageFault
    const isConfig = error instanceof ConfigFaults
    if (!isUsage && !isConfig && !(error instanceof CommandError)) throw error
    console.error(messageOf(error))
    process.exitCode = isConfig ? EXIT_CONFIG : isUsage ? EXIT_USAGE : 1
  }
}

function keep(file: string, text: string, source: string, isOnlyChecked: boolean): void {
  const isCurrent = existsSync(file) && readFileSync(file, 'utf8') === text
  if (isOnlyChecked && !isCurrent) {
    throw new CommandError(`${shown(file)} is not up to date with ${source}: npm run client -- --out ${shown(file)}`)
  }
  if (!isCurrent) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  console.log(`${shown(file)} ${isCurrent ? 'is up to date' : 'is written'}, from ${source}`)
}

void main()
