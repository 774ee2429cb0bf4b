import { DuckDBInstance } from '@duckdb/node-api'

const connection = DuckDBInstance.create(':memory:').then((instance) => instance.connect())

export default () => async () => {
  const reader = await (await connection).runAndReadAll('SELECT CAST(sum(range) AS INTEGER) AS sum FROM range(1000)')
  return reader.getRows()
}
