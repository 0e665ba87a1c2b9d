//! Cities and instance types.

use compute_core::quota::size::CATALOG;

use super::Look;
use super::table::{Cell, Column, Table};
use crate::invocation::Invocation;
use crate::model::cities::OfferedCity;
use crate::model::quota::Resource;

/// Cities in a table.
pub(crate) fn list(views: &[OfferedCity], is_wide: bool, look: Look) -> String {
    let has_names = views.iter().any(|view| !view.name.is_empty());
    let mut columns = vec![Column::new("CITY")];
    if has_names {
        columns.push(Column::cut("NAME"));
    }
    columns.extend([Column::cut("STATUS"), Column::number("INSTANCES")]);
    let mut table = Table::new(columns);
    for view in views {
        let mut cells: Vec<Cell> = vec![view.city.as_str().into()];
        if has_names {
            cells.push(view.name.as_str().into());
        }
        cells.extend([Cell::status(view.status.as_str()), view.instances.to_string().into()]);
        table.row(cells);
        if let Some(message) = view.message.as_ref().filter(|_| is_wide || !view.available) {
            table.note(message.as_str());
        }
    }
    table.render(look)
}

/// What is said when there is none.
pub(crate) fn none(place: &str, invocation: &Invocation) -> String {
    format!("No cities are offered to {place} yet.\n  {}\n", invocation.command("access"))
}

/// Instance types in a table.
pub(crate) fn types(look: Look) -> String {
    let mut table = Table::new([Column::new("NAME"), Column::number("VCPUS"), Column::number("MEMORY")]);
    for one in CATALOG {
        table.row([
            Cell::from(one.name),
            Resource::Vcpus.amount(one.vcpu_millis).into(),
            Resource::Memory.amount(one.memory_mib).into(),
        ]);
    }
    table.render(look)
}
