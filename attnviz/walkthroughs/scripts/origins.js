/**
 * What a page of a walkthrough knows of its numbers: how each was worked out, and what it is made of.
 * @typedef {[grid: number, rows: number[]|0, columns: number[]|0, name: string]} Part 0 is all of them
 * @typedef {[grid: number, row: number, column: number, name: string, arithmetic: string, parts: Part[]]} Origin
 * @typedef {{numbers: any[][], tables: number[][]}} OriginData each part of all numbers; of each cell of each table the number that it is, or -1
 * @typedef {{grids: string[]}} WalkLabels
 */

/** Whether a number is one of those that a part names. @param {Origin} number @param {Part} part */
function isIn([grid, row, column], [of, rows, columns]) {
  return grid === of && (!rows || rows.includes(row)) && (!columns || columns.includes(column));
}

/**
 * Which number an address names, such as ``#cell=scores.0.2``; -1 where it names none.
 * @param {string} fragment @param {Origin[]} numbers @param {string[]} grids
 */
function numberOf(fragment, numbers, grids) {
  const [, name, row, column] = /^(.*)\.(\d{1,6})\.(\d{1,6})$/su.exec(new URLSearchParams(fragment.slice(1)).get("cell") ?? "") ?? [];
  return numbers.findIndex(([grid, ...at]) => grids[grid] === name && at[0] === Number(row) && at[1] === Number(column));
}
