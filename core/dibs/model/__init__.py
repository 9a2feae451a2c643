"""What every engine shares: names, states and rules. Pure: nothing here touches a disk."""
