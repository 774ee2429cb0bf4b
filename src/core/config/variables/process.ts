import { availableParallelism } from 'node:os'
import { DAY_MS, type VariableRow } from './row.ts'

/** Enough to notice that threads do not share their memory. With more of them a change of the code takes longer to reach all. */
const DEVELOPED_LANES = 2

/** Threads, and the life of the process. */
export const PROCESS_VARIABLES = {
  PROCESSES: {
    type: 'integer',
    min: 1,
    max: 99,
    default: 1,
    unit: 'processes',
    effect:
      'Processes that `npm start` runs on one port, each with its own lanes; `npm run dev` and `--boot-tool` run one.',
  },
  LANES: {
    type: 'integer',
    min: 1,
    max: 256,
    // Each process has a primary thread beside its lanes.
    default: ({ processes }, isDevelopment) =>
      Math.max(
        1,
        Math.min(
          Math.floor(availableParallelism() / Number(processes ?? 1)) - 1,
          isDevelopment ? DEVELOPED_LANES : 256,
        ),
      ),
    unit: 'threads',
    effect: 'Number of worker threads of a process that run the plugins.',
  },
  LANE_MAX_INFLIGHT: {
    type: 'integer',
    min: 1,
    max: 65_535,
    default: 1024,
    unit: 'requests',
    effect:
      'Most requests in one lane that wait for the header of their answer, with those that were given up and whose handlers have not settled; if every lane is full, the answer is 503.',
  },
  LANE_STALL_MS: {
    type: 'integer',
    min: 50,
    max: DAY_MS,
    default: 10_000,
    unit: 'ms',
    effect: 'A lane that is blocked for longer is replaced, unless a debugger holds it.',
  },
  LANE_MEMORY_MB: {
    type: 'integer',
    min: 32,
    max: 1_048_576,
    default: 512,
    unit: 'MiB',
    effect: 'Largest JavaScript heap of a lane; a lane that needs more is replaced.',
  },
  LANE_ENV: {
    type: 'names',
    default: [],
    unit: 'comma-separated names, `AWS_*` for all that begin so',
    effect:
      'Variables that libraries in lanes read from `process.env`, beside those of Node and the system. A plugin reads its own with `config.get`.',
  },
  LANE_FREEZE_BUILTINS: {
    type: 'boolean',
    default: false,
    effect:
      'Whether nothing in a lane can replace what JavaScript brings (`JSON.parse`, `Array.prototype.map`): such an assignment is without effect, or throws.',
  },
  UV_THREADPOOL_SIZE: {
    type: 'integer',
    min: 1,
    max: 1024,
    default: undefined,
    unit: 'threads',
    effect: 'Threads for files and DNS, fixed before the start; unset, `npm start` takes 4 × cores, at least 16.',
  },
  POOL_STALL_MS: {
    type: 'integer',
    min: 100,
    max: DAY_MS,
    default: 5000,
    unit: 'ms',
    effect: 'The process is not ready while that pool lets a call wait for longer.',
  },
  BOOT_STRICT: {
    type: 'boolean',
    default: false,
    effect:
      'Whether the process is not ready when a plugin is dead at its start, until a reload fixes it: a rolling update stops there.',
  },
  SHUTDOWN_DELAY_MS: {
    type: 'integer',
    min: 0,
    max: DAY_MS,
    default: 0,
    unit: 'ms',
    effect:
      'After SIGTERM the process is not ready for so long while it still serves, for balancers that ask now and then; then it drains.',
  },
  SHUTDOWN_TIMEOUT_MS: {
    type: 'integer',
    min: 0,
    max: DAY_MS,
    default: 10_000,
    unit: 'ms',
    effect: 'Time of the drain; what runs then is handed back, and the process ends.',
  },
  GUARDIAN: {
    type: 'boolean',
    default: true,
    effect: 'Whether `npm start` starts the service again when its process dies. False where a supervisor does.',
  },
  PRIMARY_STALL_MS: {
    type: 'integer',
    min: 1000,
    max: DAY_MS,
    default: 10_000,
    unit: 'ms',
    effect: 'The guardian ends and restarts a process whose main thread is blocked for longer.',
  },
  CRASH_REPORTS_DIR: {
    type: 'folder',
    default: 'data/crashes',
    effect: 'Where the guardian keeps its reports of the last 20 deaths of the process.',
  },
  NODE_ENV: {
    type: 'text',
    default: 'development',
    effect:
      '`npm start` and `heddle start` set `production` where it is unset. Unless it is that, answers are checked against the `response` schemas of their routes, and the log warns of events that no contract declares.',
  },
  NODE_APP_INSTANCE: {
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: undefined,
    effect: 'Number of this process, set by a supervisor that runs several processes of one service (pm2 does).',
  },
  NOTIFY_SOCKET: {
    type: 'text',
    default: undefined,
    unit: 'path of a socket',
    effect:
      'Set by systemd for a unit of `Type=notify`: the process reports there when it is ready, reloads and stops.',
  },
  WATCHDOG_USEC: {
    type: 'integer',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    default: undefined,
    unit: 'µs',
    effect: 'Set by systemd for `WatchdogSec`: it ends a process whose main thread has not turned for so long.',
  },
  WATCHDOG_PID: {
    type: 'integer',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    default: undefined,
    unit: 'process id',
    effect: 'Set by systemd with `WATCHDOG_USEC`: the process that reports; another one does not.',
  },
} as const satisfies Record<string, VariableRow>
