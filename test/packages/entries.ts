/** What a thing needs of the machine. `needs.ts` starts it; its address is a variable of the plugin. */
export type Need = 'postgres' | 'mysql' | 'redis' | 'chromium' | 'loopback'

export interface Entry {
  /** As npm knows it. `things/` has a module for each: its default export gets what reads a variable, and returns what does its thing once. */
  name: string
  /** The newest that fits, where that is not the newest. */
  version?: string
  /** What its main thing is. */
  does: string
  /** Packages that its thing takes beside it, with a version where the newest does not fit. */
  beside?: readonly string[]
  needs?: readonly Need[]
  /** A file of the application, and what npm runs there before, with variables of its own. */
  prepare?: { file: string; text: string; command: readonly string[]; env: Readonly<Record<string, string>> }
  /** Variables of the service. */
  env?: Readonly<Record<string, string>>
  /** A file that is preloaded into the service, by `NODE_OPTIONS`. */
  preload?: string
  /** The one line with which it works. */
  line?: string
  /** Why it does not work, and what to use. */
  instead?: string
  /** What else is to be known. */
  note?: string
}

/** What a client does where this machine has no server for it. */
export const NO_SERVER = 'connects to nobody, and says so'
const FETCH = 'answers by [`http.mount`](../contracts/http.md#fetch-handlers)'

const BROWSER =
  "Chromium ends with its lane, and leaves folders of its profile in `TMPDIR`, which is the lane's own to set and yours to clear"

/** By what they are for. */
export const ENTRIES: readonly Entry[] = [
  { name: 'zod', does: 'parses' },
  { name: 'ajv', does: 'validates' },
  { name: 'lodash', does: 'groups a list' },
  { name: 'uuid', does: 'makes one' },
  { name: 'date-fns', does: 'adds a month' },
  { name: 'luxon', does: 'adds an hour across summer time' },
  { name: 'axios', does: 'a request', needs: ['loopback'] },
  { name: 'undici', does: 'a request, with an agent', needs: ['loopback'] },
  { name: 'node-fetch', does: 'a request', needs: ['loopback'] },
  { name: 'got', does: 'a request', needs: ['loopback'] },
  { name: 'jsonwebtoken', does: 'signs and verifies' },
  { name: 'jose', does: 'signs and verifies' },
  { name: 'bcryptjs', does: 'hashes and compares' },
  { name: 'bcrypt', does: 'hashes and compares' },
  { name: 'argon2', does: 'hashes and verifies' },
  { name: '@node-rs/bcrypt', does: 'hashes and compares' },
  { name: '@node-rs/argon2', does: 'hashes and verifies' },
  { name: 'pino', does: 'a line to a file, by a transport with a thread of its own' },
  { name: 'winston', does: 'a line to a file' },
  { name: 'pg', does: 'a query of PostgreSQL, with a pool', needs: ['postgres'] },
  { name: 'mysql2', does: 'a query of MariaDB, with a pool', needs: ['mysql'] },
  { name: 'mongodb', does: NO_SERVER, needs: ['loopback'] },
  { name: 'mongoose', does: `${NO_SERVER}; validates a model`, needs: ['loopback'] },
  { name: 'knex', does: 'a query of PostgreSQL', beside: ['pg'], needs: ['postgres'] },
  { name: 'kysely', does: 'a query of PostgreSQL', beside: ['pg'], needs: ['postgres'] },
  { name: 'drizzle-orm', does: 'a query of PostgreSQL', beside: ['pg'], needs: ['postgres'] },
  {
    name: '@prisma/client',
    does: 'writes and reads a row of PostgreSQL, by the generated client and `@prisma/adapter-pg`',
    beside: ['prisma', '@prisma/adapter-pg'],
    needs: ['postgres'],
    prepare: {
      file: 'looms/schema.prisma',
      text: `generator client {
  provider = "prisma-client"
  output   = "./generated"
}
datasource db {
  provider = "postgresql"
}
model Loom {
  id   Int    @id @default(autoincrement())
  name String
}
`,
      command: ['prisma', 'generate', '--schema', 'looms/schema.prisma'],
      // The generator needs no engine, and would fetch one.
      env: { PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' },
    },
  },
  { name: 'better-sqlite3', does: 'writes and reads a row' },
  { name: 'node:sqlite', does: 'writes and reads a row' },
  { name: 'lmdb', does: 'writes and reads' },
  { name: '@duckdb/node-api', does: 'a query' },
  { name: 'ioredis', does: 'writes and reads', needs: ['redis'] },
  { name: 'redis', does: 'writes and reads', needs: ['redis'] },
  { name: 'kafkajs', does: NO_SERVER, needs: ['loopback'] },
  { name: 'amqplib', does: NO_SERVER, needs: ['loopback'] },
  {
    name: 'bullmq',
    does: 'adds a job, which a `Worker` in each lane works on',
    needs: ['redis'],
    note: 'a job whose lane has ended is taken again after `stalledInterval`, 30 s without that option',
  },
  { name: '@aws-sdk/client-s3', does: 'puts and gets an object', needs: ['loopback'] },
  {
    name: 'openai',
    does: 'a completion',
    needs: ['loopback'],
    env: { OPENAI_API_KEY: 'a key', LANE_ENV: 'OPENAI_API_KEY' },
    line: '`LANE_ENV=OPENAI_API_KEY`',
  },
  {
    name: '@anthropic-ai/sdk',
    does: 'a message',
    needs: ['loopback'],
    env: { ANTHROPIC_API_KEY: 'a key', LANE_ENV: 'ANTHROPIC_API_KEY' },
    line: '`LANE_ENV=ANTHROPIC_API_KEY`',
  },
  { name: 'stripe', does: 'makes a customer', needs: ['loopback'] },
  { name: 'googleapis', does: 'lists files', needs: ['loopback'] },
  { name: 'nodemailer', does: 'sends a mail', needs: ['loopback'] },
  { name: '@grpc/grpc-js', does: 'a call, as a client', needs: ['loopback'] },
  { name: 'firebase-admin', does: 'signs a token' },
  { name: 'sharp', does: 'resizes a picture' },
  { name: '@napi-rs/canvas', does: 'draws a picture' },
  { name: 'puppeteer-core', does: "a page of the system's Chromium", needs: ['chromium'], note: BROWSER },
  { name: 'playwright-core', does: "a page of the system's Chromium", needs: ['chromium'], note: BROWSER },
  { name: 'jsdom', does: 'runs a page' },
  { name: 'cheerio', does: 'reads a page' },
  { name: 'xlsx', does: 'writes and reads a sheet' },
  { name: 'pdfkit', does: 'writes a page' },
  { name: 'msgpackr', does: 'packs and unpacks' },
  { name: 'onnxruntime-node', does: 'runs a model' },
  {
    name: '@sentry/node',
    does: 'sends an error',
    needs: ['loopback'],
    preload: "require('@sentry/node').init({ dsn: process.env.TRIAL_HTTP.replace('//', '//key@') + '/1' })",
    line: '`NODE_OPTIONS="--require ./sentry.cjs"`, which calls `init`',
    env: { LANE_ENV: 'TRIAL_HTTP' },
  },
  { name: '@sentry/profiling-node', does: 'its integration' },
  {
    name: '@opentelemetry/sdk-node',
    version: '0.223',
    does: 'a span',
    beside: ['@opentelemetry/api@1.9'],
    needs: ['loopback'],
    preload:
      "process.env.OTEL_EXPORTER_OTLP_ENDPOINT = process.env.TRIAL_HTTP; new (require('@opentelemetry/sdk-node').NodeSDK)().start()",
    line: '`NODE_OPTIONS="--require ./tracing.cjs"`, which starts it',
    note: "npm refuses 0.300 and later beside heddle's own exporter, which takes OpenTelemetry 2",
    env: { OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none', LANE_ENV: 'OTEL_*,TRIAL_HTTP' },
  },
  {
    name: 'dd-trace',
    does: 'a span',
    needs: ['loopback'],
    preload: "require('dd-trace/init')",
    line: '`NODE_OPTIONS="--require dd-trace/init"`',
    env: { LANE_ENV: 'DD_*', DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false' },
  },
  {
    name: 'newrelic',
    does: 'a transaction',
    needs: ['loopback'],
    preload: "require('newrelic')",
    line: '`NODE_OPTIONS="--require newrelic"`',
    note: 'in the primary alone: [agents](agents.md)',
    env: {
      NEW_RELIC_APP_NAME: 'looms',
      NEW_RELIC_LICENSE_KEY: 'a'.repeat(40),
      NEW_RELIC_LOG_ENABLED: 'false',
      NEW_RELIC_NO_CONFIG_FILE: 'true',
      LANE_ENV: 'NEW_RELIC_*',
    },
  },
  { name: 'socket.io', does: 'a message and its answer, on a port of its own', beside: ['socket.io-client'] },
  { name: 'express', does: 'answers on a port of its own' },
  { name: 'fastify', does: 'answers by `inject`' },
  { name: '@apollo/server', does: 'a query', beside: ['graphql'] },
  { name: 'graphql-yoga', does: FETCH, beside: ['graphql'] },
  { name: 'hono', does: FETCH },
  { name: '@trpc/server', does: FETCH },
  { name: 'better-auth', does: `${FETCH}: a new user` },
]

/** The file of its thing. */
export const thingOf = ({ name }: Entry): string => `${name.replace(/^@/, '').replaceAll(/[/:]/g, '-')}.ts`
