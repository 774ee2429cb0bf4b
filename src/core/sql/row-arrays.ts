/**
 * A statement that begins with this has arrays for rows, in the order of its columns: for query builders, which give several columns one name.
 * On PostgreSQL they hold points in time and NUMERIC as the server writes them, as the libraries expect it of a driver.
 */
export const ROWS_AS_ARRAYS = '/* rows: arrays */ '
